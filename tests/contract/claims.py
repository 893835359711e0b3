"""PostgreSQL under test: each worker is a store of its own on one database, and leases by claims.

Where routing and sending are apart, a worker is one of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.contract.bench import APP, OTHER_APP
from tests.contract.sql import SqlUnderTest
from waypost.domain.amendment import Amended, Amendment
from waypost.domain.backlog import Lags, Waiting
from waypost.domain.channel import Channel
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.time import Instant
from waypost.ports.outbox import OutboxView
from waypost.ports.promises import Promise
from waypost.ports.views import Views
from waypost.ports.work import Acceptance, Lease, NewNotification, Replay, Settled, Work
from waypost.stores.redis.broker import RedisChannelPublisher, RedisPublisher
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.stores.sql.claims.held import Comparison, Held
from waypost.stores.sql.claims.lease import Part
from waypost.stores.sql.claims.work import ClaimedWork
from waypost.stores.sql.database import Database
from waypost.stores.sql.outbox.relay import CLAIM, Claim
from waypost.stores.sql.outbox.relaying import Relay
from waypost.stores.sql.outbox.topics import ChannelTopics, LaneTopics, Topics
from waypost.stores.sql.outbox_view import SqlOutboxView
from waypost.stores.sql.settings import OutboxSettings
from waypost.stores.sql.store import Store
from waypost.stores.sql.views import SqlViews
from waypost.telemetry.sink import Silent


class ClaimsUnderTest(SqlUnderTest):
    """Stores on PostgreSQL; *apart*: some lease to route and others to send."""

    def __init__(self, url: str, *, apart: bool = False) -> None:
        super().__init__(url)
        self._apart = apart
        self._held: dict[int, Held] = {}

    @property
    def views(self) -> Views:
        """Reads that know what is leased."""
        return SqlViews(self._opened.database, self.clock, leases_are_stored=True)

    async def open_workers(self, count: int) -> Sequence[Work]:
        """Members with equal shares of what is due."""
        workers: list[Work] = []
        for stored in await super().open_workers(count):
            store, held = self._workers.pop(id(stored)), Held()
            relay = self.relay(store)
            worker: Work
            if self._apart:
                routes = ClaimedWork(store, self.clock, held, Part.WHOLE, relay)
                worker = Both(ClaimedWork(store, self.clock, held, Part.TARGETS, relay), routes)
            else:
                worker = ClaimedWork(store, self.clock, held, outbox=relay)
            self._workers[id(worker)] = store
            self._held[id(worker)] = held
            workers.append(worker)
        return workers

    def relay(self, store: Store) -> Relay | None:
        """What publishes the outbox of one more worker: nothing."""
        return None

    def database_of(self, worker: Work) -> Database:
        """A worker's database."""
        return self._workers[id(worker)].database

    def sender(self, worker: Work) -> ClaimedWork:
        """The one that sends."""
        return worker.work if isinstance(worker, Both) else _claimed(worker)

    def router(self, worker: Work) -> ClaimedWork:
        """The one that routes."""
        return worker.routes if isinstance(worker, Both) else _claimed(worker)

    def member_of(self, worker: Work) -> int:
        """The number of its member."""
        member = self._workers[id(worker)].member()
        assert member is not None
        return member

    def held_by(self, worker: Work) -> set[tuple[NotificationId, int]]:
        """What it knows that it has."""
        return {(one, n) for (_, one), parts in self._held[id(worker)]._parts.items() for n in parts}

    async def compare(self, worker: Work) -> int:
        """Let a worker compare what it has with what the store says; how much it let go of."""
        store = self._workers[id(worker)]
        return await Comparison(store.database, store.member, self._held[id(worker)], lambda: None).compare()


class PublishedUnderTest(ClaimsUnderTest):
    """The same with an outbox that is published to Redis, when a test says so."""

    def __init__(self, url: str, redis_url: str, *, apart: bool = False) -> None:
        super().__init__(url, apart=apart)
        self._wire = SinglePrimary(RedisSettings(url=redis_url, timeout_s=10), Silent())
        self._relays: dict[int, Relay] = {}
        self._families: Mapping[Channel, str] | None = None
        self.topics: Topics | None = None
        """Where it is published; None is by lane."""

    async def open(self) -> None:
        """Connect to Redis as well."""
        await super().open()
        await self._wire.start()

    def relay(self, store: Store) -> Relay:
        """See ClaimsUnderTest."""
        notifications = RedisPublisher(self._wire, "work:")
        deliveries = RedisPublisher(self._wire, "delivery:") if self._apart else notifications
        topics = self.topics or LaneTopics(notifications, deliveries)
        relay = Relay(store, topics, OutboxSettings(to="redis"), self.clock)
        self._relays[id(store)] = relay
        return relay

    def relay_of(self, worker: Work) -> Relay:
        """What publishes in the process of a worker."""
        return self._relays[id(self._workers[id(worker)])]

    async def claim(self, worker: Work, *, publish: bool = False) -> None:
        """Let the worker's relay come so far: it claimed, and perhaps published."""
        claimed = await self.database_of(worker).commits.submit(CLAIM, Claim(self.member_of(worker), 100))
        if publish:
            await self.relay_of(worker)._publish(claimed)

    def by_channel(self, families: Mapping[Channel, str]) -> None:
        """Publish by channel, in relays that are opened from now on, and show so."""
        self._families = families
        self.topics = ChannelTopics(RedisChannelPublisher(self._wire, ""), families)

    @property
    def outbox(self) -> OutboxView:
        """Reads that know what topics there are."""
        return SqlOutboxView(self._opened.database, self._families)

    async def of_channel(self, channel: str) -> list[tuple[str, dict[str, Any]]]:
        """The keys and entries of a channel's topic."""
        (found,) = await self._wire.execute([("XRANGE", f"{channel}_notification", "-", "+")])
        return [(key.decode(), json.loads(body)) for _, (_, key, _, body) in found]

    async def at_the_broker(self, topic: str = "work:") -> int:
        """Entries that are there."""
        streams = [f"{topic}{{{lane}}}:{app}" for lane in Lane for app in (APP, OTHER_APP)]
        return sum(await self._wire.execute([("XLEN", stream) for stream in streams]))

    async def close(self) -> None:
        """See StoreUnderTest."""
        await self._wire.stop()
        await super().close()


def _claimed(worker: Work) -> ClaimedWork:
    assert isinstance(worker, ClaimedWork)
    return worker


class Both:
    """A worker that routes and one that sends, of one process."""

    def __init__(self, work: ClaimedWork, routes: ClaimedWork) -> None:
        self.work = work
        self.routes = routes

    @property
    def promises(self) -> frozenset[Promise]:
        """See Work."""
        return self.work.promises

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work."""
        return await self.work.accept(batch)

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work."""
        routed = await self.routes.lease(lane, n, until)
        if len(routed.items) == n:
            return routed
        sent = await self.work.lease(lane, n - len(routed.items), until)
        return Lease(sent.token, lane, (*routed.items, *sent.items))

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work."""
        return await self.work.extend(lease, until)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work."""
        return await self.work.settle(lease, settled)

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int:
        """See Work."""
        return await self.work.promote_due(now, n, lifted)

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        return await self.work.conditions()

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work."""
        return await self.work.amend(amendments, now)

    async def depth(self, lane: Lane) -> int:
        """See Work; each counts what is its to lease."""
        return await self.work.depth(lane) + await self.routes.depth(lane)

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work."""
        return await self.work.backlog(now, counts_from)

    async def lag(self) -> Lags:
        """See Work; who routes hears of what is new."""
        return await self.routes.lag()
