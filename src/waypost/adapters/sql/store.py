"""The store of one worker: every port on one database object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from waypost.adapters.sql.added import AddedTable, names_of_notifications
from waypost.adapters.sql.audit import SqlAudit
from waypost.adapters.sql.bulk import SqlBulk
from waypost.adapters.sql.bulk_views import SqlBulkViews
from waypost.adapters.sql.database import Database
from waypost.adapters.sql.dedup import SqlDedup
from waypost.adapters.sql.devices import SqlDevices
from waypost.adapters.sql.engine import Joined
from waypost.adapters.sql.engines import engine_of
from waypost.adapters.sql.erasures import SqlErasures
from waypost.adapters.sql.holds import SqlHolds
from waypost.adapters.sql.journal import SqlJournal
from waypost.adapters.sql.keys import SqlKeys
from waypost.adapters.sql.ledger import SqlLedger
from waypost.adapters.sql.marks import SqlMarks
from waypost.adapters.sql.opt_outs import SqlOptOuts
from waypost.adapters.sql.outbox_view import SqlOutboxView
from waypost.adapters.sql.retention import SqlRetention
from waypost.adapters.sql.settings import SqlSettings
from waypost.adapters.sql.views import SqlViews
from waypost.adapters.sql.work import SqlWork
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.ports.clock import Clock
from waypost.ports.peers import Peers
from waypost.telemetry.sink import Telemetry


class Store:
    """The open database and the adapters on it."""

    def __init__(
        self, database: Database, joined: Joined, clock: Clock, beside: Sequence[str] = (), *, with_devices: bool
    ) -> None:
        """*beside* are tables of features whose rows belong to notifications."""
        self.database = database
        self.peers = joined.peers
        """The other workers, on whatever machine."""
        self.shards = joined.locks
        """None is owned at first."""
        self.member = joined.member
        self.work = SqlWork(database, self.shards, self.peers, with_devices=with_devices)
        self.dedup = SqlDedup(database)
        self.retention = SqlRetention(database, clock, beside)
        self.devices = SqlDevices(database)
        self.views = SqlViews(database, clock)
        self.keys = SqlKeys(database)
        self.journal = SqlJournal(database)
        self.bulk = SqlBulk(database)
        self.bulk_views = SqlBulkViews(database)
        self.outbox = SqlOutboxView(database)
        self.opt_outs = SqlOptOuts(database)
        self.marks = SqlMarks(database)
        self.audit = SqlAudit(database)
        self.erasures = SqlErasures(database, beside)
        self.ledger = SqlLedger(database)
        self.holds = SqlHolds(database)

    async def close(self) -> None:
        """Write what is queued and let go of the files and locks."""
        await self.database.close()
        await self.shards.close()


async def open_store(
    settings: SqlSettings,
    *,
    clock: Clock,
    peers: Peers | None,
    telemetry: Telemetry,
    tables: Sequence[AddedTable] = (),
    with_devices: bool = True,
    may_be_away: bool = False,
) -> Store:
    """Bring the database to today's schema, with *tables* of features, and open it; StorageBroken where that fails.

    One that *may_be_away* is opened all the same, and brought to its schema when it is back. Not *with_devices*, the
    registry is kept elsewhere: recipients of bulk lists are leased without their devices.
    """
    engine = engine_of(settings)
    try:
        await asyncio.to_thread(engine.prepare, clock.now(), tables)
    except Unavailable as away:
        if not may_be_away or away.code is not ErrorCode.STORAGE_AWAY:
            raise
    database = Database(engine, settings, clock=clock, telemetry=telemetry)
    database.commits.start()
    joined = await engine.join(peers, database.commits.report)
    database.commits.fence = joined.fence
    return Store(database, joined, clock, names_of_notifications(tables), with_devices=with_devices)
