"""The log stack under test: each worker is a member of the group on a real broker, with a ledger on SQLite.

What travels through the broker arrives a moment later; so each call first waits until its worker has received, or the
ledger has recorded, all that is in the log by then. That is all that tells it from a store.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined] # its types do not say what it exports
    AdminClient,
    OffsetSpec,
)

from tests.contract.balanced import check_balance
from tests.contract.log_clients import LogTopics
from tests.contract.sql import SqlUnderTest
from waypost.domain.amendment import Amended, Amendment, Withdraw
from waypost.domain.backlog import Lags, Waiting
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.time import Instant
from waypost.ports.balance import BalanceSheet
from waypost.ports.journal import Journal
from waypost.ports.ledger import Arrived, LogEntry
from waypost.ports.promises import Promise
from waypost.ports.views import Views
from waypost.ports.work import Acceptance, Lease, NewNotification, Replay, Settled, Work
from waypost.stores.kafka.log import LedgerStore, Log
from waypost.stores.kafka.messages import decided_in, task_in
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames
from waypost.telemetry.sink import Silent

PARTITIONS = 2
_LOOK_S = 0.005
_ANSWER_S = 20.0
_COORDINATOR_S = 2.0


def settings_of(bootstrap: str, prefix: str, group: str) -> KafkaSettings:
    """A small log on one broker."""
    return KafkaSettings(
        bootstrap=bootstrap, prefix=prefix, group=group, partitions=PARTITIONS, replication=1, trial=True,
        settle_ms=0, session_timeout_s=6, stall_s=5,
    )  # fmt: skip


async def ends_of(admin: AdminClient, places: Sequence[PartitionRef]) -> dict[PartitionRef, int]:
    """The offsets after the last message of each partition, visible or about to be."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it ships no types
    asked = {TopicPartition(place.topic, place.partition): latest for place in places}
    while True:
        found = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        try:
            answers = {at: await asyncio.wrap_future(each) for at, each in found.items()}
        except KafkaException:  # a topic that was just made has no leader yet
            await asyncio.sleep(_LOOK_S)  # nothing tells when there is a leader
            continue
        return {PartitionRef(at.topic, at.partition): each.offset for at, each in answers.items()}


class LogUnderTest(SqlUnderTest):
    """The log stack; its group begins at the end of what other tests left in the topics."""

    def __init__(self, url: str, topics: LogTopics) -> None:
        """Record into the database of *url*."""
        super().__init__(url)
        self._kafka = msgspec.structs.replace(topics.settings, group=f"{topics.settings.prefix}{uuid.uuid4().hex}")
        self.topics = TopicNames(self._kafka)
        self._logs: dict[int, Log] = {}
        self._forgotten: list[Log] = []
        self._reader = topics.reader
        self._admin = topics.admin
        self._recorded: dict[PartitionRef, int] = {}
        self._recording = asyncio.Lock()
        """Held until what was read is in the ledger: who asks meanwhile waits for that, too."""

    async def open(self) -> None:
        """Begin where the topics end."""
        await super().open()
        work = await self.ends(self.topics.work)
        await self._begin_at([TopicPartition(place.topic, place.partition, end) for place, end in work.items()])
        self._recorded = await self.ends([*self.topics.lanes, self.topics.records])
        self._reader.assign([TopicPartition(each.topic, each.partition, at) for each, at in self._recorded.items()])

    async def open_workers(self, count: int) -> Sequence[Work]:
        """Members of one group."""
        workers = []
        for stored in await super().open_workers(count):
            store = self._workers[id(stored)]
            behind = LedgerStore(stored, store.ledger, store.views, store.holds)
            peers, telemetry = self._party.join(), Silent()
            log = Log(self._kafka, behind, peers=peers, clock=self.clock, telemetry=telemetry, delivers=True)
            await log.start()
            worker = Attentive(log, self)
            self._logs[id(worker)] = log
            self._workers[id(worker)] = self._workers.pop(id(stored))
            workers.append(worker)
        return workers

    async def crash(self, worker: Work) -> None:
        """What it held is let go of unfinished; that the group notices at once spares the session time-out."""
        log = self._logs.pop(id(worker))
        log._assignment.lost(list(log._assignment._parts))
        await log.stop()
        await super().crash(worker)

    async def leave(self, worker: Work) -> None:
        """A worker ends as it should: its partitions are finished first."""
        await self._logs[id(worker)].stop()
        self.forget(worker)
        await super().crash(worker)

    def freeze(self, worker: Work, thaw: threading.Event) -> None:
        """The worker's consumer does nothing until *thaw*; its transactions are its own affair."""
        consumer = self._logs[id(worker)]._consumer
        receive = consumer._receive

        def frozen() -> None:
            thaw.wait()
            receive()

        setattr(consumer, receive.__name__, frozen)

    def forget(self, worker: Work) -> None:
        """Wait for this worker no more."""
        self._forgotten.append(self._logs.pop(id(worker)))

    @property
    def views(self) -> Views:
        """The ledger, once it has recorded all that is in the log."""
        return Recorded(super().views, self)

    @property
    def journal(self) -> Journal:
        """As views."""
        return Recorded(super().journal, self)

    @property
    def balance(self) -> BalanceSheet:
        """As of all that is in the log."""
        return Recorded(super().balance, self)

    async def close(self) -> None:
        """See StoreUnderTest."""
        logs = (*self._logs.values(), *self._forgotten)
        for log in logs:
            log._assignment.lost(list(log._assignment._parts))
        await asyncio.gather(*(log.stop() for log in logs))
        await super().close()

    async def ends(self, topics: Sequence[str]) -> dict[PartitionRef, int]:
        """The offsets after the last message of each partition, visible or about to be."""
        return await ends_of(
            self._admin, [PartitionRef(topic, number) for topic in topics for number in range(PARTITIONS)]
        )

    async def said(self, topic: str, since: Mapping[PartitionRef, int]) -> list[dict[str, Any]]:
        """The JSON messages of a topic for others, since these offsets."""
        places = [place for place in since if place.topic == topic]
        reader = Consumer({**self._kafka.client(), "group.id": self._kafka.group, "enable.partition.eof": True})
        reader.assign([TopicPartition(place.topic, place.partition, since[place]) for place in places])
        ended, found = 0, []
        while ended < len(places):
            message = await asyncio.to_thread(reader.poll, 0.1)
            if message is not None and message.error() is None:
                found.append(msgspec.json.decode(message.value() or b""))
            elif message is not None:
                ended += 1
        await asyncio.to_thread(reader.close)
        return found

    async def caught_up(self) -> None:
        """Return when the workers have received all that is in the log by now, or as much as they read ahead."""
        ends = await self.ends(self.topics.work)
        async with asyncio.timeout(_ANSWER_S):
            while self._is_moving() or any(self._is_behind(place, end) for place, end in ends.items()):  # noqa: ASYNC110 - no hook in the product
                await asyncio.sleep(_LOOK_S)

    async def heard(self, taken_back: Sequence[tuple[AppId, NotificationId]]) -> None:
        """Return when every worker knows that these were taken back."""
        async with asyncio.timeout(_ANSWER_S):
            while not all(log._withdrawn.has(*each) for log in self._logs.values() for each in taken_back):  # noqa: ASYNC110 - no hook in the product
                await asyncio.sleep(_LOOK_S)

    async def recorded(self) -> None:
        """Record all that is in the log by now, and what is being written to it: the end of what was taken back."""
        async with asyncio.timeout(_ANSWER_S):
            while any(scribe.waiting_since_s is not None for log in self._logs.values() for scribe in log._scribes):  # noqa: ASYNC110 - no hook in the product
                await asyncio.sleep(_LOOK_S)
        async with self._recording:
            await self._record(await self.ends(list({place.topic for place in self._recorded})))

    async def _record(self, ends: Mapping[PartitionRef, int]) -> None:
        while any(self._recorded[place] < end for place, end in ends.items()):
            entries: list[LogEntry] = []
            for message in await asyncio.to_thread(self._reader.consume, 500, 0.02):
                place, value = PartitionRef(str(message.topic()), message.partition() or 0), message.value() or b""
                error, offset = message.error(), message.offset() or 0
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    self._recorded[place] = offset
                    continue
                self._recorded[place] = offset + 1
                if place.topic == self.topics.records:
                    entries.append(decided_in(value))
                elif (task := task_in(value)).targets is None:
                    entries.append(Arrived(task.notification))
            await self._opened.ledger.record(entries)

    async def _begin_at(self, offsets: list[TopicPartition]) -> None:
        """Let the group begin there; its coordinator may just have started, and then says so for a while."""
        asked = ConsumerGroupTopicPartitions(self._kafka.group, offsets)
        while True:
            try:
                (answer,) = self._admin.alter_consumer_group_offsets([asked], request_timeout=_COORDINATOR_S).values()
                await asyncio.wrap_future(answer)
                return
            except KafkaException as failed:
                if not failed.args[0].retriable() and failed.args[0].code() != KafkaError._TIMED_OUT:
                    raise
            await asyncio.sleep(_LOOK_S)  # a coordinator that is being loaded tells nobody when it is

    def _is_moving(self) -> bool:
        """Whether partitions are about to go from one worker to another."""
        held = [log._assignment._parts.values() for log in self._logs.values()]
        return not all(held) or any(part.is_leaving for parts in held for part in parts)

    def _is_behind(self, place: PartitionRef, end: int) -> bool:
        """Whether a worker has still to receive what is there before *end*; one that has enough in hand has not."""
        part = next((parts[place] for log in self._logs.values() if place in (parts := log._assignment._parts)), None)
        return part is None or (part.progress.position < end and not part.is_paused)


class Attentive:
    """A worker that has received what there is before it is asked."""

    def __init__(self, log: Log, under_test: LogUnderTest) -> None:
        self._work = log.work
        self._under_test = under_test
        self._told: list[tuple[AppId, NotificationId]] = []
        """Of what it took back on the log: what all workers are to hear of."""
        take_back = log._withdrawn.take_back

        async def noted(orders: Sequence[Withdraw]) -> None:
            self._told += [(each.app, each.id) for each in orders]
            await take_back(orders)

        setattr(log._withdrawn, take_back.__name__, noted)

    @property
    def promises(self) -> frozenset[Promise]:
        """See Work."""
        return self._work.promises

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work; a replay is decided by what is recorded."""
        if any(isinstance(item, Replay) for item in batch):
            await self._under_test.recorded()
        return await self._work.accept(batch)

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work."""
        await self._under_test.caught_up()
        return await self._work.lease(lane, n, until)

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work."""
        return await self._work.extend(lease, until)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work."""
        return await self._work.settle(lease, settled)

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int | None:
        """See Work."""
        await self._under_test.caught_up()
        return await self._work.promote_due(now, n, lifted)

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        await self._under_test.caught_up()
        return await self._work.conditions()

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work; what is taken back on the log is heard of by all before the test goes on."""
        await self._under_test.caught_up()
        await self._under_test.recorded()
        answers = await self._work.amend(amendments, now)
        await self._under_test.heard(self._told)
        return answers

    async def depth(self, lane: Lane) -> int:
        """See Work."""
        await self._under_test.caught_up()
        return await self._work.depth(lane)

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work."""
        await self._under_test.recorded()
        return await self._work.backlog(now, counts_from)

    async def lag(self) -> Lags:
        """See Work."""
        await self._under_test.caught_up()
        await self._under_test.recorded()
        return await self._work.lag()


class Recorded:
    """Reads that see all that is in the log."""

    def __init__(self, reads: Any, under_test: LogUnderTest) -> None:
        self._reads = reads
        self._under_test = under_test

    def __getattr__(self, name: str) -> Any:
        async def read(*arguments: Any) -> Any:
            await self._under_test.recorded()
            return await getattr(self._reads, name)(*arguments)

        return read


@asynccontextmanager
async def opened_log(url: str, topics: LogTopics) -> AsyncIterator[LogUnderTest]:
    """A group that begins at the end of the topics; the ledger of *url* is empty, and adds up in the end."""
    under_test = LogUnderTest(url, topics)
    await under_test.open()
    yield under_test
    await check_balance(under_test)
    await under_test.close()
