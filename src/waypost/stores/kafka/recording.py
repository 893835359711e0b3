"""The log as a recorder reads it: the lanes say what arrived, the records what was settled.

Where several processes can write the ledger, each that records is a member of one group, which shares the partitions:
as many record as a topic has partitions. They are assigned by range, so that all that is said of one user comes to the
same recorder. Else one process reads all of it, whichever has the role, and whoever comes after it begins at once.

Where a partition goes on is in the ledger. The group is told, too, for those who watch how far behind it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # its types do not say what it exports
    AdminClient,
    OffsetSpec,
)
from msgspec import Struct

from waypost.domain.time import SECOND_MS, Instant, later
from waypost.ports.clock import Clock
from waypost.ports.ledger import Arrived, Batch, Completed, Ledger, LogEntry, Mark
from waypost.stores.kafka.messages import Newer, Unreadable, decided_in, task_in
from waypost.stores.kafka.partitions import Committed, PartitionRef, beginnings
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames, unavailable
from waypost.telemetry import Event, Telemetry

T = TypeVar("T")

_WAIT_S = 0.25
_BATCH = 1_000
_ASK_S = 15.0
_LOOK_S = 2.0
"""Seconds between two questions how far the log goes."""
_UNDER_WAY_S = 10.0
"""Seconds that a notification may take from its id to the producer; clocks of machines may differ as much."""


class _Ends(Struct, frozen=True):
    """The ends of the partitions at a certain time."""

    at: Instant
    places: dict[PartitionRef, int]


class KafkaRecords:
    """The log as a recorder reads it: see RecordedLog; its parts are partitions."""

    def __init__(
        self,
        settings: KafkaSettings,
        topics: TopicNames,
        ledger: Ledger,
        telemetry: Telemetry,
        clock: Clock,
        *,
        is_shared: bool,
    ) -> None:
        """Create the reader; *is_shared*: several may record at once."""
        self._topics = topics
        self._ledger = ledger
        self._telemetry = telemetry
        self._clock = clock
        self._client = settings.client()
        self._is_shared = is_shared
        self._under_way_ms = int((settings.answer_s + _UNDER_WAY_S) * SECOND_MS)
        self._consumer = Consumer(
            {
                **settings.client(),
                "group.id": f"{settings.group}.recorder",
                "partition.assignment.strategy": "range",
                "session.timeout.ms": int(settings.session_timeout_s * 1_000),
                "heartbeat.interval.ms": int(settings.heartbeat_s * 1_000),
                "max.poll.interval.ms": int(settings.silence_s * 1_000),
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": True,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 16_384,
            }
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-log-recorder")
        self._has_begun = False
        self._given: list[TopicPartition] = []
        """The partitions that are this recorder's, of which it is not known yet where they go on."""
        self._read: list[Message] = []
        self._recorded: dict[PartitionRef, int] = {}
        """The position of each partition that is read, as the ledger has it."""
        self._passed: dict[PartitionRef, int] = {}
        """The offsets up to which each partition was read and advanced past; beyond its position is nothing to record.
        """
        self._ends: _Ends | None = None
        """The ends that must be behind before there is something to say."""
        self._looked_s = clock.monotonic() - _LOOK_S

    async def stop(self) -> None:
        """Stop reading; what was not advanced past is read again, and by others at once."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._consumer.close)
        await asyncio.to_thread(self._thread.shutdown)

    async def read(self) -> Batch:
        """See RecordedLog."""
        if not self._read:
            self._read = await self._in_thread(self._next)
        if self._given:
            await self._go_on()
        marks = self._marks()
        if not marks:
            self._pass()  # ends of partitions at most
            return Batch()
        said = (message for message in self._read if message.error() is None)
        return Batch([entry for message in said if (entry := self._entry(message)) is not None], marks)

    async def advance(self) -> None:
        """See RecordedLog."""
        said = self._said()
        self._recorded |= said
        self._pass()
        await self._in_thread(lambda: self._tell_group(said))

    async def begin_again(self) -> None:
        """See RecordedLog."""
        self._given = [TopicPartition(place.topic, place.partition) for place in self._recorded]
        self._forget()

    async def passed(self) -> Completed | None:
        """See RecordedLog: what the log held when that was last asked for is behind, and so is what was older."""
        if self._ends is None and self._recorded and self._clock.monotonic() - self._looked_s >= _LOOK_S:
            self._looked_s = self._clock.monotonic()
            self._ends = await self._in_thread(self._look)
        ends = self._ends
        if ends is None or any(self._passed.get(place, 0) < end for place, end in ends.places.items()):
            return None
        self._ends = None
        return Completed([_part(place) for place in ends.places], later(ends.at, -self._under_way_ms))

    def _marks(self) -> list[Mark]:
        """Return the progress to note when what was read is recorded."""
        return [Mark(_part(place), self._recorded[place], end) for place, end in self._said().items()]

    def _said(self) -> dict[PartitionRef, int]:
        """Return where each partition goes on after its messages of what was read."""
        return {_place(each): _after(each) for each in self._read if each.error() is None}

    def _pass(self) -> None:
        """Move past what was read."""
        self._passed |= {_place(each): _after(each) for each in self._read}
        self._read = []

    async def _go_on(self) -> None:
        """Read the partitions that were given, from where the ledger says."""
        given = self._given
        known, every = await self._in_thread(lambda: self._ask_where(given))
        positions = await self._ledger.begin(
            {_part(each.place): each.offset for each in known}, [_part(place) for place in every]
        )
        begun = {each.place: positions[_part(each.place)] for each in known}
        await self._in_thread(lambda: self._consumer.assign(_partitions(begun)))
        self._given, self._recorded, self._passed = [], begun, dict(begun)
        self._telemetry.event(Event.RECORDING_SHARED, count=len(begun))

    def _ask_where(self, given: list[TopicPartition]) -> tuple[list[Committed], list[PartitionRef]]:
        """Ask where the group was in what is *given*, and for all partitions that there are."""
        return beginnings(self._consumer, given), self._every()

    def _every(self) -> list[PartitionRef]:
        found = self._consumer.list_topics(timeout=_ASK_S).topics
        return [PartitionRef(topic, number) for topic in self._all_topics() for number in found[topic].partitions]

    def _all_topics(self) -> list[str]:
        return [*self._topics.lanes, self._topics.records]

    def _look(self) -> _Ends:
        """Ask the brokers for the ends of what is read; what is in an open transaction does not count."""
        at = self._clock.now()
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it ships no types
        asked = {TopicPartition(place.topic, place.partition): latest for place in self._recorded}
        admin = AdminClient(self._client)
        found = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_ASK_S)
        return _Ends(at, {PartitionRef(each.topic, each.partition): end.result().offset for each, end in found.items()})

    async def _in_thread(self, act: Callable[[], T]) -> T:
        """Call in a thread what speaks to the cluster, so that it holds up nobody; Unavailable where that is away."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, act)
        except KafkaException as failed:
            raise unavailable(failed) from failed

    # What follows runs in the thread, while the event loop waits for it.

    def _begin(self) -> None:
        if self._is_shared:
            self._consumer.subscribe(self._all_topics(), self._on_assign, self._on_revoke, self._on_revoke)
        else:
            self._given = [TopicPartition(place.topic, place.partition) for place in self._every()]
        self._has_begun = True

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.assign([])  # nothing is read before the ledger has said from where
        self._forget()
        self._given = partitions

    def _on_revoke(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        consumer.unassign()
        self._forget()
        self._given = []

    def _forget(self) -> None:
        self._read, self._recorded, self._passed, self._ends = [], {}, {}, None

    def _next(self) -> list[Message]:
        if not self._has_begun:
            self._begin()
        first = self._consumer.poll(_WAIT_S)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(_BATCH, 0)]
        return [each for each in messages if _says_something(each) and _place(each) in self._recorded]

    def _tell_group(self, said: Mapping[PartitionRef, int]) -> None:
        with suppress(KafkaException):  # a partition that has left meanwhile; what counts is in the ledger
            self._consumer.store_offsets(offsets=_partitions(said))

    def _entry(self, message: Message) -> LogEntry | None:
        """Read what a message says; of the lanes' only what arrived, not what replaces it."""
        value = message.value() or b""
        try:
            if message.topic() == self._topics.records:
                return decided_in(value)
            task = task_in(value)
        except (Unreadable, Newer) as strange:
            event = Event.MESSAGE_NEWER if isinstance(strange, Newer) else Event.MESSAGE_UNREADABLE
            self._telemetry.event(event, topic=message.topic(), partition=message.partition(), offset=message.offset())
            if isinstance(strange, Newer):
                raise
            return None
        return Arrived(task.notification, task.claims) if task.targets is None else None


def _part(place: PartitionRef) -> str:
    """Return the ledger's name of a partition."""
    return f"{place.topic}/{place.partition}"


def _place(message: Message) -> PartitionRef:
    return PartitionRef(str(message.topic()), message.partition() or 0)


def _partitions(positions: Mapping[PartitionRef, int]) -> list[TopicPartition]:
    return [TopicPartition(place.topic, place.partition, at) for place, at in positions.items()]


def _says_something(message: Message) -> bool:
    """Tell whether it is a message, or the end of a partition."""
    error = message.error()
    return error is None or error.code() == KafkaError._PARTITION_EOF


def _after(message: Message) -> int:
    """Return the offset at which a partition goes on after *message*, which may be its end."""
    offset = message.offset() or 0
    return offset if message.error() is not None else offset + 1
