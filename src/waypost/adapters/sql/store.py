"""The store of one worker: every port on one database object."""

from __future__ import annotations

import asyncio

from waypost.adapters.sql.database import Database, prepare
from waypost.adapters.sql.settings import SqlSettings
from waypost.ports.clock import Clock
from waypost.ports.peers import Peers
from waypost.telemetry.sink import Telemetry


class Store:
    """The open database and the adapters on it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def close(self) -> None:
        """Write what is queued and let go of the files and locks."""
        await self.database.close()


async def open_store(settings: SqlSettings, *, clock: Clock, peers: Peers | None, telemetry: Telemetry) -> Store:
    """Bring the database to today's schema and open it; StorageBroken where it cannot be used."""
    await asyncio.to_thread(prepare, settings)
    database = Database(settings, clock=clock, telemetry=telemetry)
    database.commits.start()
    return Store(database)
