"""Messages read once more: what waits is kept as a place in the log, and read again when its time comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from waypost.adapters.kafka.consumer import Place
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.kafka.topics import unavailable
from waypost.domain.errors import Unavailable

_BATCH = 500
_POLL_S = 0.1
_PATIENCE_S = 10.0

Found = dict[tuple[Place, int], bytes]
"""Messages by where they are."""


class Rereading:
    """A consumer without a group, in a thread of its own; there is none until it is needed."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._consumer: Consumer | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-log-again")

    async def read(self, wanted: Mapping[Place, Collection[int]]) -> Found:
        """Read these offsets; those missing are not in the log any more. Unavailable while the cluster is away."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, wanted)
        except KafkaException as failed:
            raise unavailable(failed) from failed

    async def stop(self) -> None:
        """Read no more."""
        if self._consumer is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._consumer.close)
        await asyncio.to_thread(self._thread.shutdown)

    def _read(self, wanted: Mapping[Place, Collection[int]]) -> Found:
        consumer = self._consumer = self._consumer or self._made()
        consumer.assign([TopicPartition(place.topic, place.partition, min(at)) for place, at in wanted.items()])
        last = {place: max(at) for place, at in wanted.items()}
        found: Found = {}
        ends_s = time.monotonic() + _PATIENCE_S
        while last:
            for message in consumer.consume(_BATCH, _POLL_S):
                place, offset = Place(str(message.topic()), message.partition() or 0), message.offset() or 0
                if message.error() is None and offset in wanted[place]:
                    found[place, offset] = message.value() or b""
                if _is_end(message) or (message.error() is None and offset >= last.get(place, 0)):
                    last.pop(place, None)
            if time.monotonic() > ends_s:
                raise Unavailable("the log does not give again what waits in it")
        consumer.unassign()
        return found

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


def _is_end(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF
