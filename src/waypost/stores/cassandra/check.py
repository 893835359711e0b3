"""The check of a cluster, by what it says of itself, for ``check-config``."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from waypost.stores.cassandra.nodes import away_of, nodes_of
from waypost.stores.cassandra.schema import REVISION, revision_of
from waypost.stores.cassandra.session import CassandraCluster, Session
from waypost.stores.cassandra.settings import CassandraSettings

SAFE_COPIES = 3
"""The copies of a row that are safe: a quorum of fewer does without no node."""

_VERSION = "SELECT release_version, data_center FROM system.local"
_REPLICATION = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{keyspace}'"


class CassandraFindings(Struct, frozen=True):
    """The findings on what runs there, and what speaks against it."""

    version: str
    nodes: int
    away: tuple[str, ...]
    """The nodes that take no connection."""
    copies: int | None
    """The copies of each row in the data centre; None where the keyspace is not there yet."""
    is_simple: bool
    """Whether copies are placed without regard to racks and data centres (SimpleStrategy)."""
    revision: int

    def unsafe(self) -> Iterator[str]:
        """Yield what an operator should know before it is too late."""
        if self.away:
            yield f"away: {', '.join(self.away)}"
        if self.copies is not None and self.copies < SAFE_COPIES:
            yield f"{self.copies} of each row: a node that is down takes rows with it; 3 is safe"
        if self.is_simple:
            yield "SimpleStrategy: the copies of a row may all be in one rack; NetworkTopologyStrategy is safe"
        if self.revision < REVISION:
            yield "tables are missing: waypost migrate"


async def look(settings: CassandraSettings) -> CassandraFindings:
    """Ask one node of the cluster, and try a connection to each; Unavailable where none answers."""
    session = await CassandraCluster(settings).connect()
    try:
        return await _look(session, settings)
    finally:
        await session.close()


async def _look(session: Session, settings: CassandraSettings) -> CassandraFindings:
    version, here = (await session.execute(_VERSION))[0]
    nodes = await nodes_of(session)
    away = tuple(f"{host}:{port}" for host, port in await away_of(nodes))
    rows = await session.execute(_REPLICATION.format(keyspace=settings.keyspace))
    placed = dict(rows[0][0]) if rows else {}
    is_simple = str(placed.get("class", "")).endswith("SimpleStrategy")
    copies = placed.get("replication_factor" if is_simple else settings.data_center or here)
    revision = await revision_of(session, settings.keyspace)
    return CassandraFindings(version, len(nodes), away, int(copies or 0) if rows else None, is_simple, revision)
