"""Transactions: everything that a settlement changes in the log, with the offsets of what it settles.

One transactional id runs in one thread, one transaction after the other; a partition always goes through the same id,
so that its offsets are committed in the order of its settlements. The consumer's group metadata goes along: of a
worker that was replaced the cluster refuses the whole transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.producer import Outgoing
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import unavailable

TRANSACTION_S = 10.0
"""Seconds after which the cluster aborts what a dead worker left open; its partitions cannot be read past it."""
GIVE_UP_S = 130.0
"""A transaction that has not ended by then is given up, with its id and its thread: the client may never answer.

More than its steps take together; the cluster has aborted it long before.
"""
_CALL_S = 5.0
_SEND_S = 25.0
_PATIENCE_S = 60.0
_PAUSE_S = 0.1


class TransactionRefused(Exception):
    """The error that nothing of the transaction was written: the worker was replaced, or the cluster gave it up."""


Group = Callable[[Mapping[PartitionRef, int]], Any]
"""A function that returns the membership for partitions of that assignment that are still ours; else None."""


class Offsets(Struct):
    """The offsets of partitions once a transaction is written."""

    partitions: list[TopicPartition]
    turns: dict[PartitionRef, int]
    """The assignments by which the partitions came."""


class Transactions:
    """A maker of one transaction after the other, by one transactional id until that is given up."""

    def __init__(self, settings: KafkaSettings, group: Group) -> None:
        self._settings = settings
        self._group = group
        self._identity = _Identity(settings, group)

    async def start(self) -> None:
        """Announce the id to the cluster, which may just be starting; Unavailable where that is impossible."""
        try:
            await self._identity.call(_again_while_retriable, self._identity.open)
        except KafkaException as failed:
            raise unavailable(failed) from failed

    async def commit(self, batch: Sequence[Outgoing], offsets: Offsets, on_placed: Callable[[list[int]], None]) -> None:
        """Write *batch* and *offsets* together, or nothing: TransactionRefused, or Unavailable while the cluster is
        away.

        *on_placed* is called on the event loop with the offsets of the messages, before anybody can read them.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self._identity.call(
                    self._identity.commit, batch, offsets, lambda placed: loop.call_soon_threadsafe(on_placed, placed)
                )
        except KafkaException as failed:
            raise unavailable(failed) from failed
        except TimeoutError:
            self._identity.leave()
            self._identity = _Identity(self._settings, self._group)
            raise Unavailable("the log did not end a transaction") from None

    async def stop(self) -> None:
        """Stop the thread; a transaction under way is finished first."""
        self._identity.leave()
        await self._identity.ended()


class _Identity:
    """A transactional id, its producer and the thread that calls it."""

    def __init__(self, settings: KafkaSettings, group: Group) -> None:
        self._settings = settings
        self._group = group
        self._id = f"{settings.group}-{uuid.uuid4().hex}"
        self._producer: Producer | None = None
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="waypost-log-settle", daemon=True)
        self._thread.start()

    def call(self, act: Callable[..., object], *arguments: Any) -> asyncio.Future[None]:
        """Call in the thread, in the order of the calls; a caller who no longer waits does not end it."""
        future: asyncio.Future[None] = self._loop.create_future()

        def answer(error: BaseException | None) -> None:
            if not future.done():
                future.set_result(None) if error is None else future.set_exception(error)

        def called() -> None:
            failed: BaseException | None = None
            try:
                act(*arguments)
            except BaseException as error:  # noqa: BLE001 - whatever it is, who waits must hear of it
                failed = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(answer, failed)

        self._calls.put(called)
        return future

    def leave(self) -> None:
        """End the thread after the calls before."""
        self._calls.put(None)

    async def ended(self) -> None:
        """Wait until it has ended, or does not answer."""
        await asyncio.to_thread(self._thread.join, TRANSACTION_S + _CALL_S)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    # What follows runs in the thread.

    def open(self) -> Producer:
        """Return the producer, ready for a transaction; what a former one of the same id left open is aborted."""
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

    def commit(self, batch: Sequence[Outgoing], offsets: Offsets, placed: Callable[[list[int]], None]) -> None:
        """See Transactions; KafkaException while the cluster is away."""
        producer = self.open()
        reports = _Placed(len(batch))
        try:
            producer.begin_transaction()
            for n, out in enumerate(batch):
                producer.produce(out.topic, out.value, out.key, out.partition, on_delivery=reports.taker(n))
            producer.flush(TRANSACTION_S)
            if reports.failed or reports.left:
                raise KafkaException(reports.failed or KafkaError(KafkaError._MSG_TIMED_OUT))
            placed(reports.offsets)
            _again_while_retriable(lambda: self._send(producer, offsets), _SEND_S)
            _again_while_retriable(lambda: producer.commit_transaction(_CALL_S))
        except KafkaException as failed:
            self._give_up(producer, failed.args[0])

    def _send(self, producer: Producer, offsets: Offsets) -> None:
        """Add the offsets. Those not ours any more are refused here: the cluster asks for the membership alone."""
        group = self._group(offsets.turns)
        if group is None:
            raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION))
        producer.send_offsets_to_transaction(offsets.partitions, group, _CALL_S)

    def _give_up(self, producer: Producer, error: KafkaError) -> None:
        """Abort; replace a producer that cannot go on, whose successor under the same id ends what it left."""
        try:
            if error.fatal():
                raise KafkaException(error)
            producer.abort_transaction(TRANSACTION_S)
        except KafkaException:
            self._producer = None
            producer.purge(blocking=False)  # waiting for the threads of brokers that are gone could take for ever
            self.open()
        raise TransactionRefused(error.name())


class _Placed:
    """The places of a transaction's messages."""

    def __init__(self, count: int) -> None:
        self.offsets = [-1] * count
        self.left = count
        self.failed: KafkaError | None = None

    def taker(self, n: int) -> Callable[[KafkaError | None, Message], None]:
        """Return a function that takes the delivery report of message *n*."""

        def take(error: KafkaError | None, message: Message) -> None:
            self.left -= 1
            if error is None:
                self.offsets[n] = message.offset() or 0
            else:
                self.failed = error

        return take


def _again_while_retriable(call: Callable[[], object], patience_s: float = _PATIENCE_S) -> None:
    """Repeat a call that timed out: the cluster knows the outcome, and answers with it."""
    ends_s = time.monotonic() + patience_s
    while True:
        try:
            call()
            return
        except KafkaException as failed:
            if not failed.args[0].retriable() or time.monotonic() > ends_s:
                raise
        time.sleep(_PAUSE_S)  # nothing tells when a coordinator has loaded what it coordinates
