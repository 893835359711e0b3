"""The log as the recorder reads it: the lanes say what arrived, the records what was settled.

One process reads all of it, whichever has the role: nothing is handed over while it lives, and whoever comes after it
begins where it had advanced to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # its types do not say what it exports
    AdminClient,
    OffsetSpec,
)
from msgspec import Struct

from waypost.adapters.kafka.consumer import Place, beginnings
from waypost.adapters.kafka.messages import Newer, Unreadable, decided_in, task_in
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.kafka.topics import Topics, unavailable
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.ports.clock import Clock
from waypost.ports.ledger import Arrived, LogEntry
from waypost.telemetry import Event, Telemetry

_WAIT_S = 0.25
_BATCH = 1_000
_ASK_S = 15.0
_LOOK_S = 2.0
"""How often it is asked how far the log goes."""
_UNDER_WAY_S = 10.0
"""How long a notification may be on its way from its id to the producer; clocks of machines may differ as much."""


class _Ends(Struct, frozen=True):
    """How far the lanes went at a time."""

    at: Instant
    places: dict[Place, int]


class KafkaRecords:
    """Its position is what its group, which has no members, has committed."""

    def __init__(self, settings: KafkaSettings, topics: Topics, telemetry: Telemetry, clock: Clock) -> None:
        self._topics = topics
        self._telemetry = telemetry
        self._clock = clock
        self._client = settings.client()
        self._under_way_ms = int((settings.answer_s + _UNDER_WAY_S) * SECOND_MS)
        self._consumer = Consumer(
            {
                **settings.client(),
                "group.id": f"{settings.group}.recorder",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 16_384,
            }
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-log-recorder")
        self._has_begun = False
        self._read: list[Message] = []
        self._behind: dict[Place, int] = {}
        """Up to which offset each partition was read and advanced past."""
        self._ends: _Ends | None = None
        """The ends of the lanes that must be behind before there is something to say."""
        self._looked_s = clock.monotonic() - _LOOK_S

    async def stop(self) -> None:
        """Read no more; what was not advanced past is read again."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._consumer.close)
        await asyncio.to_thread(self._thread.shutdown)

    async def read(self) -> Sequence[LogEntry]:
        """See RecordedLog; a batch that was not advanced past is given again, one that says nothing is passed over."""
        while True:
            try:
                if not self._read:
                    self._read = await asyncio.get_running_loop().run_in_executor(self._thread, self._next)
            except KafkaException as failed:
                raise unavailable(failed) from failed
            said = (message for message in self._read if message.error() is None)
            entries = [entry for message in said if (entry := self._entry(message)) is not None]
            if entries or not self._read:
                return entries
            await self.advance()

    async def advance(self) -> None:
        """See RecordedLog."""
        read, self._read = self._read, []
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, read)
        except KafkaException as failed:
            raise unavailable(failed) from failed
        self._behind |= {Place(str(each.topic()), each.partition() or 0): _after(each) for each in read}

    async def passed(self) -> Instant | None:
        """See RecordedLog: what the lanes held when that was last asked for is behind, and so is what was older."""
        if self._ends is None and self._clock.monotonic() - self._looked_s >= _LOOK_S:
            self._looked_s = self._clock.monotonic()
            try:
                self._ends = await asyncio.get_running_loop().run_in_executor(self._thread, self._look)
            except KafkaException as failed:
                raise unavailable(failed) from failed
        ends = self._ends
        if ends is None or any(self._behind.get(place, 0) < end for place, end in ends.places.items()):
            return None
        self._ends = None
        return later(ends.at, -self._under_way_ms)

    def _look(self) -> _Ends:
        """Ask the brokers for the ends of the lanes; what is in an open transaction does not count."""
        at = self._clock.now()
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it ships no types
        asked = {
            TopicPartition(each.topic, each.partition): latest
            for each in self._consumer.assignment()
            if each.topic in self._topics.lanes
        }
        admin = AdminClient(self._client)
        found = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_ASK_S)
        return _Ends(at, {Place(each.topic, each.partition): end.result().offset for each, end in found.items()})

    def _begin(self) -> None:
        """Go to where the last recorder was."""
        found = self._consumer.list_topics(timeout=_ASK_S).topics
        topics = (*self._topics.lanes, self._topics.records)
        every = [TopicPartition(topic, number) for topic in topics for number in found[topic].partitions]
        self._consumer.assign([each.as_partition() for each in beginnings(self._consumer, every)])
        self._has_begun = True

    def _next(self) -> list[Message]:
        if not self._has_begun:
            self._begin()
        first = self._consumer.poll(_WAIT_S)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(_BATCH, 0)]
        return [message for message in messages if (error := message.error()) is None or _is_end(error)]

    def _commit(self, read: Sequence[Message]) -> None:
        said = [message for message in read if message.error() is None]
        if not said:
            return
        for message in said:
            self._consumer.store_offsets(message)
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as failed:
            if failed.args[0].code() != KafkaError._NO_OFFSET:
                raise

    def _entry(self, message: Message) -> LogEntry | None:
        """What a message says; of the lanes' only what arrived, not what replaces it."""
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


def _is_end(error: KafkaError) -> bool:
    return error.code() == KafkaError._PARTITION_EOF


def _after(message: Message) -> int:
    """Return the offset at which a partition goes on after *message*, which may be its end."""
    offset = message.offset() or 0
    return offset if message.error() is not None else offset + 1
