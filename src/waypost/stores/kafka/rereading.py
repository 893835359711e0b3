"""Reading messages again: what waits is kept as a place in the log, and read again when its time comes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from waypost.domain.errors import Unavailable
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import unavailable

_BATCH = 500
_POLL_S = 0.1
PATIENCE_S = 10.0

Found = dict[int, bytes]
"""Messages of a partition by their offsets."""


class _Asked:
    """The offsets wanted of one partition."""

    def __init__(self, place: PartitionRef, offsets: Collection[int], ends_s: float) -> None:
        self.place = place
        self.offsets = frozenset(offsets)
        self.ends_s = ends_s
        self.found: Found = {}
        self.answer: asyncio.Future[Found] = asyncio.get_running_loop().create_future()

    def take(self, message: Message) -> None:
        """Keep what is wanted; behind the last of it, or where the partition ends behind that, this is the answer.

        An end before it is that of a leader which does not have all yet.
        """
        offset, error = message.offset() or 0, message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            return
        if error is None and offset in self.offsets:
            self.found[offset] = message.value() or b""
        last = max(self.offsets)
        is_over = offset > last if error is not None else offset >= last
        if is_over and not self.answer.done():
            self.answer.set_result(self.found)

    def fail(self, error: Exception) -> None:
        """Fail the question with *error*."""
        if not self.answer.done():
            self.answer.set_exception(error)


class Rereading:
    """A consumer without a group, in a thread of its own; there is none until it is needed.

    Partitions answer each for itself: one that has no leader keeps only those waiting who asked for it.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._consumer: Consumer | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-log-again")
        self._asked: dict[PartitionRef, _Asked] = {}
        self._task: asyncio.Task[None] | None = None

    async def read(self, place: PartitionRef, offsets: Collection[int]) -> Found:
        """Read these offsets of a partition that nobody else asks for meanwhile; those missing are in the log no more.

        Unavailable where it does not answer.
        """
        assert place not in self._asked, "one question at a time"
        asked = self._asked[place] = _Asked(place, offsets, asyncio.get_running_loop().time() + PATIENCE_S)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            return await asked.answer
        finally:
            del self._asked[place]

    async def stop(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._consumer is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._consumer.close)
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self) -> None:
        """Read until every question is answered."""
        loop = asyncio.get_running_loop()
        reading: dict[PartitionRef, _Asked] = {}
        while reading or self._asked:
            over = [place for place, asked in reading.items() if self._asked.get(place) is not asked]
            new = [asked for place, asked in self._asked.items() if reading.get(place) is not asked]
            reading = dict(self._asked)
            try:
                messages = await loop.run_in_executor(self._thread, self._turn, over, new)
            except KafkaException as failed:
                for asked in reading.values():
                    asked.fail(unavailable(failed))
                messages = []
            for message in messages:
                if (known := reading.get(PartitionRef(str(message.topic()), message.partition() or 0))) is not None:
                    known.take(message)
            for asked in reading.values():
                if loop.time() > asked.ends_s:
                    asked.fail(Unavailable("the log does not give again what waits in it"))
            await asyncio.sleep(0)  # whoever was answered takes the question back

    def _turn(self, over: Collection[PartitionRef], new: Collection[_Asked]) -> list[Message]:
        consumer = self._consumer = self._consumer or self._made()
        if over:
            consumer.incremental_unassign([TopicPartition(place.topic, place.partition) for place in over])
        if new:
            begin = [(asked.place, min(asked.offsets)) for asked in new]
            consumer.incremental_assign([TopicPartition(place.topic, place.partition, at) for place, at in begin])
        if not consumer.assignment():
            return []
        first = consumer.poll(_POLL_S)
        return [] if first is None else [first, *consumer.consume(_BATCH, 0)]

    def _made(self) -> Consumer:
        return Consumer(
            {
                **self._settings.client(),
                "group.id": f"{self._settings.group}.again",  # librdkafka wants one; nothing is committed
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "queued.max.messages.kbytes": 16_384,
            }
        )
