"""The relayed stack under test: each worker is a store of its own on one PostgreSQL, with a reader of one broker.

What was accepted or released is at the broker when its relay has had its turn; so a worker that leases first lets
everybody's relay have it. That is all that tells it from a store. Where routing and sending are apart, a worker is one
of each.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import msgspec

from tests.contract.bench import APP, OTHER_APP
from tests.contract.kafka_broker import KafkaBrokerUnderTest
from tests.contract.sql import SqlUnderTest
from waypost.adapters.redis.broker import RedisBroker
from waypost.adapters.redis.settings import RedisSettings
from waypost.adapters.redis.wire import Wire
from waypost.adapters.sql.database import Database
from waypost.adapters.sql.relayed.held import Comparison, Held
from waypost.adapters.sql.relayed.lease import Part
from waypost.adapters.sql.relayed.relay import CLAIM, Claim
from waypost.adapters.sql.relayed.relaying import Relay, Topics
from waypost.adapters.sql.relayed.work import RelayedWork
from waypost.adapters.sql.settings import Durability, OutboxSettings
from waypost.adapters.sql.views import SqlViews
from waypost.domain.amendment import Amended, Amendment
from waypost.domain.backlog import Waiting
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.time import MINUTE_MS, Instant
from waypost.ports.broker import Broker
from waypost.ports.promises import Promise
from waypost.ports.views import Views
from waypost.ports.work import Acceptance, Arrival, Lease, Replay, Settled, Work
from waypost.telemetry.sink import Silent


class CarriedUnderTest(SqlUnderTest):
    """The relayed stack, whatever carries."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._settings = msgspec.structs.replace(self._settings, durability=Durability.POWER)  # as it must be
        self.relays: dict[int, Relay] = {}
        self._held: dict[int, Held] = {}

    async def reader(self) -> Broker:
        """The broker as one more worker has it."""
        raise NotImplementedError

    async def topics(self) -> Topics:
        """What one more worker reads."""
        broker = await self.reader()
        return Topics(broker, broker)

    @property
    def views(self) -> Views:
        """Reads that know what is leased."""
        return SqlViews(self._opened.database, self.clock, leases_are_stored=True)

    async def open_workers(self, count: int) -> Sequence[Work]:
        """Members with equal shares of what is due."""
        workers = []
        for stored in await super().open_workers(count):
            store = self._workers.pop(id(stored))
            topics = await self.topics()
            relay, held = Relay(store, topics, OutboxSettings(), self.clock), Held()
            if topics.notifications is topics.deliveries:
                worker = Relayed(RelayedWork(store, topics.deliveries, relay, self.clock, held), self)
            else:
                routes = RelayedWork(store, topics.notifications, relay, self.clock, held, Part.WHOLE)
                worker = Relayed(
                    RelayedWork(store, topics.deliveries, relay, self.clock, held, Part.TARGETS), self, routes
                )
            self._workers[id(worker)] = store
            self.relays[id(worker)] = relay
            self._held[id(worker)] = held
            workers.append(worker)
        return workers

    def database_of(self, worker: Work) -> Database:
        """A worker's database."""
        return self._workers[id(worker)].database

    def directly(self, worker: Work) -> Work:
        """A worker that is asked whatever its relay has done; where they are apart, the one that sends."""
        assert isinstance(worker, Relayed)
        return worker.work

    def router(self, worker: Work) -> Work:
        """The one that routes, asked in the same way."""
        assert isinstance(worker, Relayed)
        assert worker.routes is not None
        return worker.routes

    async def claim(self, worker: Work, *, publish: bool = False) -> None:
        """Let the worker's relay come so far: it claimed, and perhaps published."""
        relay, store = self.relays[id(worker)], self._workers[id(worker)]
        member = store.member()
        assert member is not None
        claimed = await store.database.commits.submit(CLAIM, Claim(member, 100))
        if publish:
            await relay._publish(claimed)

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

    async def crash(self, worker: Work) -> None:
        """What it claimed, leased or read from the broker is found by the others."""
        del self.relays[id(worker)]
        await super().crash(worker)

    async def relayed(self) -> None:
        """Bring everything in the outbox to the broker."""
        for relay in self.relays.values():
            await relay.relay()


class RelayedUnderTest(CarriedUnderTest):
    """Redis carries; its database is the test's own. *apart*: a topic between routing and sending."""

    _prefix = "contract:"

    def __init__(self, url: str, redis_url: str, *, apart: bool = False) -> None:
        super().__init__(url)
        self._redis_url = redis_url
        self._apart = apart
        self.wire: Wire

    async def open(self) -> None:
        """Connect to Redis as well."""
        await super().open()
        self.wire = Wire(RedisSettings(url=self._redis_url, timeout_s=10), Silent())
        await self.wire.start()

    async def reader(self) -> Broker:
        """See CarriedUnderTest."""
        return RedisBroker(self.wire, self._prefix, (APP, OTHER_APP), uuid.uuid4().hex, MINUTE_MS)

    async def topics(self) -> Topics:
        """See CarriedUnderTest."""
        if not self._apart:
            return await super().topics()
        sends = RedisBroker(self.wire, "contract-sent:", (APP, OTHER_APP), uuid.uuid4().hex, MINUTE_MS)
        return Topics(await self.reader(), sends)

    async def at_the_broker(self) -> int:
        """Entries that are there, handed out or not."""
        streams = [f"{self._prefix}{{{lane}}}:{app}" for lane in Lane for app in (APP, OTHER_APP)]
        return sum(await self.wire.execute([("XLEN", stream) for stream in streams]))

    async def close(self) -> None:
        """See StoreUnderTest."""
        await self.wire.stop()
        await super().close()


class RelayedByKafka(CarriedUnderTest):
    """Kafka carries; topics and group are the test's own."""

    def __init__(self, url: str, bootstrap: str, prefix: str) -> None:
        super().__init__(url)
        self._kafka = KafkaBrokerUnderTest(bootstrap, prefix)

    async def reader(self) -> Broker:
        """See CarriedUnderTest."""
        return await self._kafka.reader()

    async def crash(self, worker: Work) -> None:
        """Its partitions go to the others; that the group notices at once spares the session time-out."""
        await self._kafka.give_up(self.relays[id(worker)]._topics.deliveries)
        await super().crash(worker)

    async def relayed(self) -> None:
        """Bring everything in the outbox to its reader."""
        await super().relayed()
        await self._kafka.arrived()

    async def close(self) -> None:
        """See StoreUnderTest."""
        await self._kafka.stored()
        await super().close()


class Relayed:
    """A worker that is asked when there is nothing left to be relayed."""

    def __init__(self, work: RelayedWork, under_test: CarriedUnderTest, routes: RelayedWork | None = None) -> None:
        self.work = work
        self.routes = routes
        self._under_test = under_test

    @property
    def promises(self) -> frozenset[Promise]:
        """See Work."""
        return self.work.promises

    async def accept(self, batch: Sequence[Arrival | Replay]) -> list[Acceptance]:
        """See Work."""
        return await self.work.accept(batch)

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work."""
        await self._under_test.relayed()
        routed = None if self.routes is None else await self.routes.lease(lane, n, until)
        if routed is None or len(routed.items) == n:
            return routed or await self.work.lease(lane, n, until)
        sent = await self.work.lease(lane, n - len(routed.items), until)
        return Lease(sent.token, lane, (*routed.items, *sent.items))

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work."""
        return await self.work.extend(lease, until)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work."""
        return await self.work.settle(lease, settled)

    async def release(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int:
        """See Work."""
        return await self.work.release(now, n, lifted)

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        return await self.work.conditions()

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work."""
        return await self.work.amend(amendments, now)

    async def depth(self, lane: Lane) -> int:
        """See Work."""
        return await self.work.depth(lane)

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work."""
        return await self.work.backlog(now, counts_from)
