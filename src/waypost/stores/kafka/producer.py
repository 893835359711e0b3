"""The producer for what arrives: idempotent, its delivery reports brought to the event loop.

librdkafka reports in a thread of ours; the reports of a batch are counted there and wake the loop once.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.stores.kafka.settings import KafkaMember

_POLL_S = 0.1
_QUEUED = 100_000
"""The most messages that may wait to be sent; more are refused."""
LINGER_MS = 2
_REPORT_S = 1.0
"""After ``answer_s`` librdkafka reports what was not acknowledged; by then it has, unless it is stuck itself."""


class Outgoing(Struct, frozen=True):
    """A message to produce; without a *partition* its key decides."""

    topic: str
    key: bytes
    value: bytes
    partition: int = -1
    headers: tuple[tuple[str, bytes], ...] = ()


class Acknowledging:
    """A producer of whole batches that answers when the cluster has them."""

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
        for failed in await self.produce_each(batch):
            if failed is not None:
                raise failed

    async def produce_each(self, batch: Sequence[Outgoing]) -> list[Unavailable | None]:
        """Wait until all of *batch* is acknowledged or has failed; return why, or None, for each."""
        if not batch:
            return []
        reports = _Reports(len(batch), self._loop)
        for n, out in enumerate(batch):
            if (refused := self._queue(out, partial(reports.take, n))) is not None:
                reports.refuse(n, refused)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._answer_s + _REPORT_S):
                await asyncio.shield(reports.all)
        return reports.answers()

    def _queue(self, out: Outgoing, report: Callable[[KafkaError | None, Message], None]) -> Unavailable | None:
        """Queue one message to be sent; return why that is impossible."""
        try:
            self._producer.produce(
                out.topic, out.value, out.key, out.partition, on_delivery=report, headers=list(out.headers)
            )
        except BufferError:
            return Unavailable("too much is waiting to be written to the log")
        except KafkaException as failed:
            return Unavailable(f"the log takes nothing: {failed.args[0].name()}")
        return None

    async def stop(self) -> None:
        """Send what is queued, and end the thread."""
        self._stopping = True
        await asyncio.to_thread(self._thread.join)

    def _poll(self) -> None:
        while not self._stopping:
            self._producer.poll(_POLL_S)
        self._producer.flush(self._answer_s)


class _Reports:
    """The delivery reports of one batch."""

    def __init__(self, expected: int, loop: asyncio.AbstractEventLoop) -> None:
        self.all: asyncio.Future[None] = loop.create_future()
        self._failed: dict[int, Unavailable] = {}
        self._acknowledged: set[int] = set()
        self._expected = expected
        self._left = expected
        self._loop = loop
        self._lock = threading.Lock()

    def take(self, n: int, error: KafkaError | None, _: Message) -> None:
        """Take the report of message *n*; called in the polling thread, once for each that was queued."""
        if error is None:
            self._acknowledged.add(n)
        else:
            self._failed[n] = Unavailable(f"the log did not acknowledge: {error.name()}")
        self._count()

    def refuse(self, n: int, why: Unavailable) -> None:
        """Note that message *n* was not queued, and nobody will report it; called on the loop."""
        self._failed[n] = why
        self._count()

    def answers(self) -> list[Unavailable | None]:
        """Return why each message is not known to be written; None where it is."""
        return [None if n in self._acknowledged else self._failure(n) for n in range(self._expected)]

    def _failure(self, n: int) -> Unavailable:
        return self._failed.get(n) or Unavailable("the log did not acknowledge: no answer in time")

    def _count(self) -> None:
        with self._lock:
            self._left -= 1
            is_whole = self._left == 0
        if is_whole:
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if not self.all.done():
            self.all.set_result(None)
