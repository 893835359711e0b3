"""A writer of settlements: gathers the settlements of its partitions for a moment and writes each gathering in one
transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from confluent_kafka import TopicPartition
from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.domain.progress import Stale
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.work import Settled
from waypost.stores.kafka.dead_letters import letters
from waypost.stores.kafka.folding import Folded, Receipts, fold, rest_of
from waypost.stores.kafka.messages import SettlementRecord, Task, encode, key_of
from waypost.stores.kafka.partitions import PartitionRef
from waypost.stores.kafka.producer import Outgoing
from waypost.stores.kafka.task_queue import PartitionTasks, TaskEntry
from waypost.stores.kafka.topics import TopicNames
from waypost.stores.kafka.transactions import Offsets, TransactionRefused, Transactions

_AGAIN_S = 0.05
_AWAY_S = 0.25
MOST = 2_000
"""The most settlements in one transaction."""


class PendingSettlement:
    """A settlement, until it is written or its task is somebody else's."""

    __slots__ = ("done", "entry", "settled", "withdrawn")

    def __init__(self, entry: TaskEntry, settled: Settled, withdrawn: str | None) -> None:
        self.entry = entry
        self.settled = settled
        self.withdrawn = withdrawn
        self.done: asyncio.Future[Sequence[Stale]] = asyncio.get_running_loop().create_future()

    def refuse(self) -> None:
        """Answer that it is not written: whoever has the task now decides about it."""
        if not self.done.done():
            self.done.set_result(self.settled.refused())


class Move(Struct):
    """The change of a task that a transaction makes."""

    receipts: Receipts | None
    is_touched: bool = False
    is_given_back: bool = False
    replaced_by: int | None = None
    """The offset of what stands for the rest of it."""


class _Draft:
    """A transaction in preparation."""

    def __init__(self) -> None:
        self.out: list[Outgoing] = []
        self.moves: dict[TaskEntry, Move] = {}
        self.replacements: dict[int, TaskEntry] = {}
        """The replacements, by their number in ``out``."""
        self.stale: list[tuple[PendingSettlement, Sequence[Stale]]] = []


class SettlementWriter:
    """The writer of settlements through one transactional id."""

    def __init__(self, transactions: Transactions, topics: TopicNames, clock: Clock, gather_s: float) -> None:
        self._transactions = transactions
        self._topics = topics
        self._clock = clock
        self._gather_s = gather_s
        self._orders: list[PendingSettlement] = []
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.waiting_since_s: float | None = None
        """The time since when something waits without any progress; monotonic."""
        self.is_away = False
        """Whether the cluster did not take the last transaction."""
        self.on_failed: Callable[[Exception], None] = lambda error: None
        """Called when it can go on no more."""
        self.on_moved: Callable[[TaskEntry, Move], None] = lambda entry, move: None

    async def start(self) -> None:
        """Announce the transactional id; Unavailable where the cluster cannot be reached."""
        await self._transactions.start()
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop writing; refuse what is not written."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for order in self._orders:
            order.refuse()
        await self._transactions.stop()

    def add(self, order: PendingSettlement) -> None:
        """Write *order* with the next transaction."""
        if not self._orders and self.waiting_since_s is None:
            self.waiting_since_s = self._clock.monotonic()
        self._orders.append(order)
        self._due.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self.on_failed(error)

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(self._gather_s)
            orders, self._orders = self._orders[:MOST], self._orders[MOST:]
            if not self._orders:
                self._due.clear()
            await self._write(orders)
            self.waiting_since_s = self._clock.monotonic() if self._orders else None

    async def _write(self, orders: Sequence[PendingSettlement]) -> None:
        """Write *orders* in one transaction, again and again until it is there or they are somebody else's."""
        while orders := [order for order in orders if not _is_lost(order)]:
            draft = self._draft(orders)
            try:
                if draft.out:
                    await self._transactions.commit(draft.out, _offsets(draft), partial(_place, draft))
            except TransactionRefused:
                _forget(draft)
                await asyncio.sleep(_AGAIN_S)
                continue
            except Unavailable:
                _forget(draft)
                self.is_away = True
                await asyncio.sleep(_AWAY_S)
                continue
            self._land(draft)
            break
        self.is_away = False  # also where all of it is somebody else's by now: whoever leases next finds out

    def _draft(self, orders: Sequence[PendingSettlement]) -> _Draft:
        draft = _Draft()
        now = self._clock.now()
        for order in orders:
            entry = order.entry
            move = draft.moves.setdefault(entry, Move(entry.receipts))
            folded = fold(move.receipts, order.settled, order.withdrawn, now)
            move.receipts = folded.receipts
            move.is_given_back |= order.settled.given_back
            move.is_touched |= folded.decided is not None
            draft.stale.append((order, folded.stale))
            self._say(draft, folded, order, now)
        for entry, move in draft.moves.items():
            rest = rest_of(entry.task.notification, move.receipts) if move.is_touched and move.receipts else None
            if rest is not None:
                draft.replacements[len(draft.out)] = entry
                draft.out.append(self._message(entry.part.place.topic, rest, entry.part.place.partition))
        return draft

    def _say(self, draft: _Draft, folded: Folded, order: PendingSettlement, now: Instant) -> None:
        notification = order.settled.notification
        key = key_of(notification.app, notification.user_id)
        if folded.decided is not None:
            draft.out.append(Outgoing(self._topics.records, key, encode(SettlementRecord(folded.decided))))
            draft.out += letters(self._topics, key, folded.decided, order.entry)
        for task in folded.waiting:
            assert task.due_at is not None, "what waits has its time"
            draft.out.append(self._message(self._topics.retry(task.due_at - now), task))

    def _message(self, topic: str, task: Task, partition: int = -1) -> Outgoing:
        key = key_of(task.notification.app, task.notification.user_id)
        return Outgoing(topic, key, encode(task), partition)

    def _land(self, draft: _Draft) -> None:
        for entry, move in draft.moves.items():
            self.on_moved(entry, move)
        for order, stale in draft.stale:
            if not order.done.done():
                order.done.set_result(stale)


def _is_lost(order: PendingSettlement) -> bool:
    if order.entry.is_gone:
        order.refuse()
    return order.entry.is_gone


def _offsets(draft: _Draft) -> Offsets:
    """Return where each partition stands after the transaction; this also shows the cluster who asks."""
    settling: dict[PartitionTasks, set[int]] = {}
    for entry, move in draft.moves.items():
        of_part = settling.setdefault(entry.part, set())
        if move.is_touched and entry.offset is not None:
            of_part.add(entry.offset)
    made = []
    for part, offsets in settling.items():
        offset, metadata = part.progress.commit(offsets)
        made.append(TopicPartition(part.place.topic, part.place.partition, offset, metadata))
    return Offsets(made, {part.place: part.turn for part in settling})


def _place(draft: _Draft, placed: Sequence[int]) -> None:
    """Note the replacements, to know them when they are received, maybe before the transaction's answer."""
    for n, entry in draft.replacements.items():
        draft.moves[entry].replaced_by = placed[n]
        entry.part.replacing[placed[n]] = entry


def _forget(draft: _Draft) -> None:
    for entry in draft.replacements.values():
        offset = draft.moves[entry].replaced_by
        if offset is not None:
            entry.part.replacing.pop(offset, None)


def place_number(place: PartitionRef, count: int) -> int:
    """Choose which of *count* settlement writers writes for a partition."""
    return place.partition % count
