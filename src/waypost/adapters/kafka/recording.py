"""The log as the recorder reads it: the lanes say what arrived, the records what was settled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from waypost.adapters.kafka.messages import Newer, Unreadable, decided_in, task_in
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.kafka.topics import Topics, unavailable
from waypost.ports.ledger import Arrived, LogEntry
from waypost.telemetry import Event, Telemetry

_WAIT_S = 0.25
_BATCH = 1_000


class KafkaRecords:
    """A member of the recorders' group; its position is what the group has committed."""

    def __init__(self, settings: KafkaSettings, topics: Topics, telemetry: Telemetry) -> None:
        self._topics = topics
        self._telemetry = telemetry
        self._consumer = Consumer(
            {
                **settings.client(),
                "group.id": f"{settings.group}.recorder",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": int(settings.session_timeout_s * 1_000),
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 16_384,
                "log_level": 2,
            }
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-log-recorder")
        self._read: list[Message] = []

    async def start(self) -> None:
        """Join the recorders."""
        self._consumer.subscribe([*self._topics.lanes, self._topics.records])

    async def stop(self) -> None:
        """Leave them; what was not advanced past is read again."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._consumer.close)
        await asyncio.to_thread(self._thread.shutdown)

    async def read(self) -> Sequence[LogEntry]:
        """See RecordedLog; a batch that was not advanced past is given again."""
        try:
            if not self._read:
                self._read = await asyncio.get_running_loop().run_in_executor(self._thread, self._next)
        except KafkaException as failed:
            raise unavailable(failed) from failed
        return [entry for message in self._read if (entry := self._entry(message)) is not None]

    async def advance(self) -> None:
        """See RecordedLog."""
        read, self._read = self._read, []
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, read)
        except KafkaException as failed:
            raise unavailable(failed) from failed

    def _next(self) -> list[Message]:
        first = self._consumer.poll(_WAIT_S)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(_BATCH, 0)]
        return [message for message in messages if message.error() is None]

    def _commit(self, read: Sequence[Message]) -> None:
        for message in read:
            try:
                self._consumer.store_offsets(message)
            except KafkaException as failed:
                if failed.args[0].code() != KafkaError._STATE:  # another recorder's by now: it records it again
                    raise
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as failed:
            if failed.args[0].code() not in _NOT_OURS:
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
        return Arrived(task.notification) if task.targets is None else None


_NOT_OURS = (
    KafkaError._NO_OFFSET,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
)
"""Nothing to commit, or partitions that moved: who has them now records them again, which changes nothing."""
