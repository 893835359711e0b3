"""The log as the recorder reads it: the lanes say what arrived, the records what was settled.

One process reads all of it, whichever has the role: nothing is handed over while it lives, and whoever comes after it
begins where it had advanced to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from waypost.adapters.kafka.consumer import beginnings
from waypost.adapters.kafka.messages import Newer, Unreadable, decided_in, task_in
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.kafka.topics import Topics, unavailable
from waypost.ports.ledger import Arrived, LogEntry
from waypost.telemetry import Event, Telemetry

_WAIT_S = 0.25
_BATCH = 1_000
_ASK_S = 15.0


class KafkaRecords:
    """Its position is what its group, which has no members, has committed."""

    def __init__(self, settings: KafkaSettings, topics: Topics, telemetry: Telemetry) -> None:
        self._topics = topics
        self._telemetry = telemetry
        self._consumer = Consumer(
            {
                **settings.client(),
                "group.id": f"{settings.group}.recorder",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 16_384,
            }
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-log-recorder")
        self._has_begun = False
        self._read: list[Message] = []

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
            entries = [entry for message in self._read if (entry := self._entry(message)) is not None]
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
        return [message for message in messages if message.error() is None]

    def _commit(self, read: Sequence[Message]) -> None:
        for message in read:
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
        return Arrived(task.notification) if task.targets is None else None
