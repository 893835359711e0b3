"""The store of one worker: every port on one database object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.ports.clock import Clock
from waypost.ports.feed import Feed
from waypost.ports.peers import Peers
from waypost.stores.sql.accounts import SqlAccounts
from waypost.stores.sql.added import AddedTable, names_of_notifications
from waypost.stores.sql.analytics import SqlAnalytics
from waypost.stores.sql.analytics_retention import SqlAnalyticsRetention
from waypost.stores.sql.archive import SqlArchive
from waypost.stores.sql.audience_walk import SqlAudienceWalk
from waypost.stores.sql.audit import SqlAudit
from waypost.stores.sql.balance import SqlBalance
from waypost.stores.sql.bulk import SqlBulk
from waypost.stores.sql.bulk_views import SqlBulkViews
from waypost.stores.sql.campaigns import SqlCampaigns
from waypost.stores.sql.contact_proofs import SqlContactProofs
from waypost.stores.sql.conversions import SqlConversions
from waypost.stores.sql.database import Database
from waypost.stores.sql.dedup import SqlDedup
from waypost.stores.sql.device_events import SqlDeviceEvents
from waypost.stores.sql.devices import SqlDevices
from waypost.stores.sql.digests import SqlDigests
from waypost.stores.sql.engine import Joined
from waypost.stores.sql.engines import engine_of
from waypost.stores.sql.erasures import SqlErasures
from waypost.stores.sql.feed import SqlFeed
from waypost.stores.sql.feed_secret import SqlFeedSecret
from waypost.stores.sql.frequency import SqlFrequency
from waypost.stores.sql.holds import SqlHolds
from waypost.stores.sql.journal import SqlJournal
from waypost.stores.sql.keys import SqlKeys
from waypost.stores.sql.ledger import SqlLedger
from waypost.stores.sql.notification_reads import SqlNotificationReads
from waypost.stores.sql.opt_outs import SqlOptOuts
from waypost.stores.sql.preferences import SqlPreferences
from waypost.stores.sql.profiles import SqlProfiles
from waypost.stores.sql.recovery import SqlRecovery
from waypost.stores.sql.retention import SqlRetention
from waypost.stores.sql.rollup import SqlRollup
from waypost.stores.sql.schedules import SqlSchedules
from waypost.stores.sql.segments import SqlSegments
from waypost.stores.sql.series import SqlSeries
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.store_sizes import SqlStoreSizes
from waypost.stores.sql.templates import SqlTemplates
from waypost.stores.sql.topics import SqlTopics
from waypost.stores.sql.user_changes import SqlUserChanges
from waypost.stores.sql.user_events import SqlUserEvents
from waypost.stores.sql.views import SqlViews
from waypost.stores.sql.webhook_queue import SqlWebhookQueue
from waypost.stores.sql.work import SqlWork
from waypost.telemetry.sink import Telemetry


class Store:
    """The open database and the adapters on it."""

    def __init__(  # noqa: PLR0915 - one statement for each adapter
        self, database: Database, joined: Joined, clock: Clock, tables: Sequence[AddedTable] = (), *, with_devices: bool
    ) -> None:
        """Create the adapters; *tables* are those of features."""
        self.database = database
        self.peers = joined.peers
        """The other workers, on whatever machine."""
        self.shards = joined.locks
        """The shards; none is owned at first."""
        self.member = joined.member
        self.work = SqlWork(database, self.shards, self.peers, with_devices=with_devices)
        self.dedup = SqlDedup(database)
        self.retention = SqlRetention(database, clock, tables)
        self.archive = SqlArchive(database, clock, tables)
        self.devices = SqlDevices(database, clock)
        self.views = SqlViews(database, clock)
        self.keys = SqlKeys(database)
        self.journal = SqlJournal(database)
        self.bulk = SqlBulk(database)
        self.bulk_views = SqlBulkViews(database)
        self.opt_outs = SqlOptOuts(database)
        self.sql_feed = SqlFeed(database, clock)
        self.feed: Feed = self.sql_feed
        """The feed, or what puts copies beside it."""
        self.campaigns = SqlCampaigns(database)
        self.conversions = SqlConversions(database)
        self.audience_walk = SqlAudienceWalk(database)
        self.notification_reads = SqlNotificationReads(database, clock)
        self.feed_secret = SqlFeedSecret(database)
        self.segments = SqlSegments(database)
        self.store_sizes = SqlStoreSizes(database)
        self.topics = SqlTopics(database)
        self.profiles = SqlProfiles(database)
        self.accounts = SqlAccounts(database)
        self.contact_proofs = SqlContactProofs(database)
        self.preferences = SqlPreferences(database)
        self.user_changes = SqlUserChanges(database)
        self.frequency = SqlFrequency(database)
        self.digests = SqlDigests(database)
        self.templates = SqlTemplates(database)
        self.device_events = SqlDeviceEvents(database)
        self.schedules = SqlSchedules(database)
        self.series = SqlSeries(database)
        self.recovery = SqlRecovery(database)
        self.user_events = SqlUserEvents(database)
        self.analytics = SqlAnalytics(database, clock)
        self.analytics_retention = SqlAnalyticsRetention(database)
        self.rollup = SqlRollup(database, with_devices=with_devices)
        self.webhook_queue = SqlWebhookQueue(database)
        self.audit = SqlAudit(database)
        self.erasures = SqlErasures(database, names_of_notifications(tables))
        self.ledger = SqlLedger(database)
        self.holds = SqlHolds(database)
        self.balance = SqlBalance(database, clock)

    async def close(self) -> None:
        """Write what is queued and close the files and locks."""
        await self.balance.close()
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
    looks_every_s: float = 0.0,
) -> Store:
    """Bring the database to today's schema, with *tables* of features, and open it; StorageBroken where that fails.

    One that *may_be_away* is opened all the same, and brought to its schema when it is back. Not *with_devices*, the
    registry is kept elsewhere: recipients of bulk lists are leased without their devices.
    *looks_every_s*: see Database.
    """
    engine = engine_of(settings)
    try:
        await asyncio.to_thread(engine.prepare, clock.now(), tables)
    except Unavailable as away:
        if not may_be_away or away.code is not ErrorCode.STORAGE_AWAY:
            raise
    database = Database(engine, settings, clock=clock, telemetry=telemetry, looks_every_s=looks_every_s)
    database.commits.start()
    joined = await engine.join(peers, database.commits.report)
    database.commits.fence = joined.fence
    return Store(database, joined, clock, tables, with_devices=with_devices)
