"""Transactions: everything that a settlement changes in the log, with the offsets of what it settles.

One transactional id runs in one thread, one transaction after the other; a partition always goes through the same id,
so that its offsets are committed in the order of its settlements. The consumer's group metadata goes along: of a
worker that was replaced the cluster refuses the whole transaction.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from msgspec import Struct

from waypost.adapters.kafka.consumer import Place
from waypost.adapters.kafka.producer import Outgoing
from waypost.adapters.kafka.settings import KafkaSettings
from waypost.adapters.kafka.topics import unavailable

TRANSACTION_S = 10.0
"""The cluster aborts what a dead worker left open; until then its partitions cannot be read past it."""
_CALL_S = 5.0
_PATIENCE_S = 60.0
_PAUSE_S = 0.1


class Refused(Exception):
    """The transaction came to nothing: the worker was replaced, or the cluster gave it up. Nothing of it is there."""


Group = Callable[[Mapping[Place, int]], Any]
"""The membership of the group, for partitions that came by that assignment and are still ours; else None."""


class Offsets(Struct):
    """Where partitions stand once a transaction is there."""

    partitions: list[TopicPartition]
    turns: dict[Place, int]
    """By which assignment they came."""


class Transactions:
    """One transactional id."""

    def __init__(self, settings: KafkaSettings, group: Group) -> None:
        self._settings = settings
        self._group = group
        self._id = f"{settings.group}-{uuid.uuid4().hex}"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waypost-log-settle")
        self._producer: Producer | None = None

    async def start(self) -> None:
        """Introduce the id to the cluster, which may just be starting; Unavailable where that cannot be done."""
        try:
            await self._run(_again_while_retriable, self._open)
        except KafkaException as failed:
            raise unavailable(failed) from failed

    async def commit(self, batch: Sequence[Outgoing], offsets: Offsets, on_placed: Callable[[list[int]], None]) -> None:
        """Write *batch* and *offsets* together, or nothing: Refused, or Unavailable while the cluster is away.

        *on_placed* is called on the event loop with the offsets of the messages, before anybody can read them.
        """
        loop = asyncio.get_running_loop()
        try:
            await self._run(self._commit, batch, offsets, lambda placed: loop.call_soon_threadsafe(on_placed, placed))
        except KafkaException as failed:
            raise unavailable(failed) from failed

    async def stop(self) -> None:
        """Let go of the thread; a transaction under way is finished first."""
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self, call: Callable[..., object], *arguments: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def _open(self) -> Producer:
        """The producer, ready for a transaction; what a former one of the same id left open is aborted."""
        if self._producer is None:
            producer = Producer(
                {
                    **self._settings.client(),
                    "transactional.id": self._id,
                    "transaction.timeout.ms": int(TRANSACTION_S * 1_000),
                    "partitioner": "murmur2_random",
                    "linger.ms": 0,
                    "compression.type": "lz4",
                }
            )
            producer.init_transactions(TRANSACTION_S)
            self._producer = producer
        return self._producer

    def _commit(self, batch: Sequence[Outgoing], offsets: Offsets, placed: Callable[[list[int]], None]) -> None:
        producer = self._open()
        reports = _Placed(len(batch))
        try:
            producer.begin_transaction()
            for n, out in enumerate(batch):
                producer.produce(out.topic, out.value, out.key, out.partition, on_delivery=reports.taker(n))
            producer.flush(TRANSACTION_S)
            if reports.failed or reports.left:
                raise KafkaException(reports.failed or KafkaError(KafkaError._MSG_TIMED_OUT))
            placed(reports.offsets)
            _again_while_retriable(lambda: self._send(producer, offsets))
            _again_while_retriable(lambda: producer.commit_transaction(_CALL_S))
        except KafkaException as failed:
            self._give_up(producer, failed.args[0])

    def _send(self, producer: Producer, offsets: Offsets) -> None:
        """Add the offsets. What is not ours any more is refused here: the cluster asks for the membership alone."""
        group = self._group(offsets.turns)
        if group is None:
            raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION))
        producer.send_offsets_to_transaction(offsets.partitions, group, _CALL_S)

    def _give_up(self, producer: Producer, error: KafkaError) -> None:
        """Abort; a producer that cannot go on is replaced, and its successor under the same id ends what it left."""
        try:
            if error.fatal():
                raise KafkaException(error)
            producer.abort_transaction(TRANSACTION_S)
        except KafkaException:
            self._producer = None
            producer.purge(blocking=False)  # waiting for the threads of brokers that are gone could take for ever
            self._open()
        raise Refused(error.name())


class _Placed:
    """Where the messages of a transaction went."""

    def __init__(self, count: int) -> None:
        self.offsets = [-1] * count
        self.left = count
        self.failed: KafkaError | None = None

    def taker(self, n: int) -> Callable[[KafkaError | None, Message], None]:
        """What takes the delivery report of message *n*."""

        def take(error: KafkaError | None, message: Message) -> None:
            self.left -= 1
            if error is None:
                self.offsets[n] = message.offset() or 0
            else:
                self.failed = error

        return take


def _again_while_retriable(call: Callable[[], object]) -> None:
    """What timed out is asked for again: the cluster knows the outcome, and answers with it."""
    ends_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            call()
            return
        except KafkaException as failed:
            if not failed.args[0].retriable() or time.monotonic() > ends_s:
                raise
        time.sleep(_PAUSE_S)  # nothing tells when a coordinator has loaded what it coordinates
