"""The connection of one process, made when it is first needed: a cluster that is away stops nothing but look-ups."""

from __future__ import annotations

import asyncio
from time import monotonic

from waypost.domain.errors import Unavailable
from waypost.stores.cassandra.schema import REVISION, revision_of, take_steps
from waypost.stores.cassandra.session import CassandraCluster, Session
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.cassandra.statements import Statements, prepare_all

CONNECT_PAUSE_S = 1.0
"""Seconds between two attempts to connect."""


class CassandraLink:
    """The link to the cluster; once open, the driver keeps it and looks for nodes that went and came by itself.

    One process of a machine *migrates*; the others wait until it has.
    """

    def __init__(self, settings: CassandraSettings, *, migrates: bool) -> None:
        self._settings = settings
        self._migrates = migrates
        self._cluster: CassandraCluster | None = None
        self._made: tuple[Session, Statements] | None = None
        self._making = asyncio.Lock()
        self._failed: Unavailable | None = None
        self._tried_s = float("-inf")

    async def made(self) -> tuple[Session, Statements]:
        """Return the open session and its statements; Unavailable while there is none."""
        if self._made is None:
            async with self._making:
                if self._made is None:
                    self._made = await self._make()
        return self._made

    async def close(self) -> None:
        """Close the connection."""
        if self._made is not None:
            await self._made[0].close()
            self._made = None

    async def _make(self) -> tuple[Session, Statements]:
        if self._failed is not None and monotonic() < self._tried_s + CONNECT_PAUSE_S:
            raise self._failed
        try:
            return await self._connected()
        except Unavailable as away:
            self._failed, self._tried_s = away, monotonic()
            raise

    async def _connected(self) -> tuple[Session, Statements]:
        if self._cluster is None:
            self._cluster = CassandraCluster(self._settings)
        session = await self._cluster.connect()
        try:
            if self._migrates:
                await take_steps(session, self._settings)
            elif (revision := await revision_of(session, self._settings.keyspace)) != REVISION:
                raise Unavailable(f"the tables in Cassandra have revision {revision}, not {REVISION}: waypost migrate")
            return session, await prepare_all(session, self._settings)
        except Unavailable:
            await session.close()
            raise
