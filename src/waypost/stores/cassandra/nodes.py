"""The nodes of a cluster, and which of them take no connection: reads do without two of three, so nobody else tells."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from waypost.domain.errors import Unavailable
from waypost.stores.cassandra.link import CassandraLink
from waypost.stores.cassandra.session import Session
from waypost.telemetry import Event, Metric, Telemetry

CONNECT_S: Final = 2.0
WATCH_S: Final = 10.0
_PEERS = "SELECT native_address, native_port FROM system.peers_v2"
_HERE = "SELECT rpc_address, rpc_port FROM system.local"

Node = tuple[str, int]
"""A host and a port."""


async def nodes_of(session: Session) -> list[Node]:
    """List the nodes, as the one that is asked knows them."""
    rows = [*await session.execute(_HERE), *await session.execute(_PEERS)]
    return [(str(host), port) for host, port in rows]


async def away_of(nodes: Sequence[Node]) -> list[Node]:
    """Try a connection to each; return those that take none."""
    answers = await asyncio.gather(*(_answers(*node) for node in nodes))
    return [node for node, up in zip(nodes, answers, strict=True) if not up]


class NodeWatch:
    """A watch over the nodes; what it finds is a metric, for an alert, and an event when it changes."""

    def __init__(self, link: CassandraLink, telemetry: Telemetry) -> None:
        self._link = link
        self._telemetry = telemetry
        self._known: list[Node] = []
        self._away: list[Node] = []

    async def look(self) -> None:
        """Find out who is away; where nobody answers, of those who were known."""
        try:
            session, _ = await self._link.made()
            self._known = await nodes_of(session)
        except Unavailable:
            pass  # whoever looks up devices reports it
        away = sorted(await away_of(self._known))
        self._telemetry.gauge(Metric.REGISTRY_NODES_AWAY, len(away))
        if away != self._away:
            named = " ".join(f"{host}:{port}" for host, port in away)
            self._telemetry.event(Event.REGISTRY_NODES, away=named, count=len(away), nodes=len(self._known))
        self._away = away


async def _answers(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True
