"""The way into the log for what arrives: an idempotent producer, its delivery reports brought to the event loop.

librdkafka reports in a thread of ours; the reports of a batch are counted there and wake the loop once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from msgspec import Struct

from waypost.adapters.kafka.settings import KafkaMember
from waypost.domain.errors import Unavailable

_POLL_S = 0.1
_QUEUED = 100_000
"""Messages that may wait to be sent; more are refused."""
LINGER_MS = 2


class Outgoing(Struct, frozen=True):
    """A message to produce; without a *partition* its key decides."""

    topic: str
    key: bytes
    value: bytes
    partition: int = -1
    headers: tuple[tuple[str, bytes], ...] = ()


class Acknowledging:
    """Produces whole batches, and answers when the cluster has them."""

    def __init__(self, settings: KafkaMember) -> None:
        self._answer_s = settings.answer_s
        self._producer = Producer(
            {
                **settings.client(),
                "acks": "all",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",  # where every other client puts the same key
                "linger.ms": LINGER_MS,
                "delivery.timeout.ms": int(settings.answer_s * 1_000),
                "queue.buffering.max.messages": _QUEUED,
                "compression.type": "lz4",
            }
        )
        self._loop = asyncio.get_running_loop()
        self._stopping = False
        self._thread = threading.Thread(target=self._poll, name="waypost-log-producer", daemon=True)
        self._thread.start()

    async def produce(self, batch: Sequence[Outgoing]) -> None:
        """Return when all of *batch* is acknowledged.

        Unavailable where that is not known of any of it: it may be in the log, or may not.
        """
        if not batch:
            return
        reports = _Reports(len(batch), self._loop)
        try:
            for out in batch:
                self._producer.produce(
                    out.topic, out.value, out.key, out.partition, on_delivery=reports.take, headers=list(out.headers)
                )
        except BufferError:
            raise Unavailable("too much is waiting to be written to the log") from None
        except KafkaException as failed:
            raise Unavailable(f"the log takes nothing: {failed.args[0].name()}") from None
        async with asyncio.timeout(self._answer_s + 1):  # librdkafka has reported by then
            failure = await asyncio.shield(reports.all)
        if failure is not None:
            raise Unavailable(f"the log did not acknowledge: {failure}")

    async def stop(self) -> None:
        """Let what is queued go out, and end the thread."""
        self._stopping = True
        await asyncio.to_thread(self._thread.join)

    def _poll(self) -> None:
        while not self._stopping:
            self._producer.poll(_POLL_S)
        self._producer.flush(self._answer_s)


class _Reports:
    """The delivery reports of one batch."""

    def __init__(self, expected: int, loop: asyncio.AbstractEventLoop) -> None:
        self.all: asyncio.Future[str | None] = loop.create_future()
        self._left = expected
        self._failure: str | None = None
        self._loop = loop

    def take(self, error: KafkaError | None, _: Message) -> None:
        """Called in the polling thread alone, once for each message."""
        if error is not None:
            self._failure = error.name()
        self._left -= 1
        if self._left == 0:
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if not self.all.done():
            self.all.set_result(self._failure)
