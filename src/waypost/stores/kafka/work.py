"""The transactional boundary on a log: accepted work is in Kafka, and nowhere else until it is recorded.

What waits for a schedule, was replayed or belongs to a bulk job has its truth in the store, and is left to its Work.
Tokens of that one's leases are positive, of the log's negative.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence, Set
from typing import Any

from msgspec import Struct

from waypost.domain.amendment import (
    Amended,
    Amendment,
    NotOpen,
    SingleAmendment,
    Supersede,
    TooLate,
    Withdraw,
    gathered,
)
from waypost.domain.backlog import AppLag, Lags, Waiting
from waypost.domain.errors import Unavailable, WaypostError
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.ledger import Ledger
from waypost.ports.work import Acceptance, Lease, NewNotification, Replay, Settled, Unwritten, Work, WorkItem
from waypost.stores.kafka.accepting import Accepting, some_written
from waypost.stores.kafka.assignment import Assignment
from waypost.stores.kafka.folding import cancelled, open_target
from waypost.stores.kafka.promises import KEPT
from waypost.stores.kafka.settlement_writer import PendingSettlement, SettlementWriter
from waypost.stores.kafka.stored_work import StoredWork
from waypost.stores.kafka.task_queue import Shelved, TaskEntry
from waypost.stores.kafka.task_queue import Waiting as WaitingTask
from waypost.stores.kafka.unrecorded import Unrecorded
from waypost.stores.kafka.withdrawals import WithdrawalTable

_AT_ONCE = Instant(0)


class Stored(Struct, frozen=True):
    """The store beside the log."""

    work: Work
    ledger: Ledger
    unrecorded: Unrecorded


class LogWork:
    """The work of the partitions that this process has; it accepts for all of them."""

    promises = KEPT

    def __init__(
        self,
        accepting: Accepting,
        assignment: Assignment,
        settlement_writers: Sequence[SettlementWriter],
        withdrawn: WithdrawalTable,
        stored: Stored,
        clock: Clock,
    ) -> None:
        self._accepting = accepting
        self._assignment = assignment
        self._scribes = settlement_writers
        self._withdrawn = withdrawn
        self._stored = stored.work
        self._ledger = stored.ledger
        self._unrecorded = stored.unrecorded
        self._clock = clock
        self._tokens = itertools.count(-1, -1)
        self._leases: dict[int, dict[NotificationId, TaskEntry]] = {}
        self._beside = StoredWork(stored.work)
        self._asks_store: dict[Lane, bool] = {}
        """Whether the store is asked for its own work of a lane when the log's is leased next: every second time."""

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work; a content duplicate leaves no record. The log and the store each take their part, or do not."""
        ours = [item for item in batch if isinstance(item, NewNotification) and item.notification.scheduled_at is None]
        rest = [
            item for item in batch if not (isinstance(item, NewNotification) and item.notification.scheduled_at is None)
        ]
        if not (ours and rest):
            return await (self._accepting.accept(ours) if ours else self._stored.accept(rest))
        in_store = iter(await _each(self._stored.accept(rest), len(rest)))
        in_log = iter(await _each(self._accepting.accept(ours), len(ours)))
        return some_written(
            [
                next(in_log)
                if isinstance(item, NewNotification) and item.notification.scheduled_at is None
                else next(in_store)
                for item in batch
            ]
        )

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work; *until* is not needed: a dead worker's partitions go to the others. Apps take turns in memory.

        The store is asked beside: what it has is leased once it has answered, and the log's work does not wait for it.
        """
        came = self._assignment.task_queue.came[lane]
        is_answered = False
        while True:
            came.clear()
            if (lease := await self._beside.take(lane, n, until)) is not None:
                self._asks_store[lane] = True
                return lease
            if (lease := self._lease(lane, n)).items:
                self._ask_store(lane, n, until)
                return lease
            if is_answered:
                return lease
            was_asked = self._beside.is_asked(lane)
            asked = self._beside.ask(lane, n, until)
            await _first_of(asked, came)
            is_answered = asked.done() and not was_asked  # what came since an older question may not be in its answer

    def _ask_store(self, lane: Lane, n: int, until: Instant) -> None:
        if self._asks_store.setdefault(lane, True):
            self._beside.ask(lane, n, until)
        self._asks_store[lane] = not self._asks_store[lane]

    def _lease(self, lane: Lane, n: int) -> Lease:
        if self._assignment.failure is not None:
            raise WaypostError("the log can no longer be read") from self._assignment.failure
        token = next(self._tokens)
        held: dict[NotificationId, TaskEntry] = {}
        later: list[TaskEntry] = []
        for entry in self._assignment.task_queue.take(lane) if n > 0 else ():
            notification_id = entry.task.notification.id
            if notification_id in held:
                later.append(entry)  # a settlement names its notification: one task of each in a lease
            elif self._withdrawn.why(entry.task.notification) is not None:
                self._cancel(entry)
            else:
                held[notification_id] = entry
            if len(held) == n:
                break
        for entry in reversed(later):
            self._assignment.task_queue.put(entry, first=True)
        for entry in held.values():
            entry.part.leased.add(entry)
        if held:
            self._leases[token] = held
            self._assignment.regulate()
        return Lease(token, lane, tuple(_item(entry) for entry in held.values()))

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work; only a worker that lost partitions is overtaken."""
        if lease.token > 0:
            return await self._stored.extend(lease, until)
        return not any(entry.is_gone for entry in self._leases.get(lease.token, {}).values())

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work; waits while the cluster is away, and refuses what is another worker's by now."""
        if lease.token > 0:
            return await self._stored.settle(lease, settled)
        held = self._leases.get(lease.token, {})
        stale: list[Stale] = []
        orders: list[PendingSettlement] = []
        for one in settled:
            entry = held.get(one.notification.id)
            if entry is None or entry.is_gone:
                held.pop(one.notification.id, None)
                stale += one.refused()
            else:
                orders.append(self._order(entry, one))
        for order in orders:
            stale += await asyncio.shield(order.done)
        self._let_go(lease.token, orders)
        return stale

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int | None:
        """See Work; where the store has not answered, what the log has counts, and None where that is nothing."""
        released = await self._assignment.promote_due(now, n, lifted)
        of_store = await self._beside.promote_due(now, n - released, lifted)
        return released or None if of_store is None else released + of_store

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        return self._assignment.task_queue.conditions() | await self._beside.conditions()

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work; of the log's own nobody knows yet whether a worker has begun: no attempt after that is made.

        Confirmations count once the target's settlement is recorded, and so do waits: both are the store's.
        """
        parts = [await self._spread(each) for each in amendments]
        wanted = [each for part in parts for each in part]
        orders = [each for each in wanted if isinstance(each, Withdraw)]
        ours = await self._of_log(orders)
        await self._withdrawn.take_back(
            [each for each in orders if each.id in ours]
        )  # first: the store follows the log
        stored = await self._stored.amend(wanted, now) if wanted else []
        unknown = {each.id for n, each in enumerate(wanted) if _is_unknown(stored[n])}
        late = await self._late([each for each in orders if each.id not in ours], unknown)
        await self._withdrawn.take_back([each for each in orders if each.id in late])
        ours |= late
        answers = (
            TooLate(0) if isinstance(each, Withdraw) and each.id in ours else stored[n] for n, each in enumerate(wanted)
        )
        return gathered(parts, answers)

    async def _spread(self, amendment: Amendment) -> list[SingleAmendment]:
        if isinstance(amendment, Supersede):
            return [amendment.withdraws(each) for each in await self._ledger.older(amendment)]
        return [amendment]

    async def _of_log(self, orders: Sequence[Withdraw]) -> set[NotificationId]:
        """Return those whose truth is the log, as far as they are recorded."""
        by_app: dict[AppId, list[NotificationId]] = {}
        for each in orders:
            by_app.setdefault(each.app, []).append(each.id)
        return {one for app, ids in by_app.items() for one in await self._ledger.of_log(app, ids)}

    async def _late(self, orders: Sequence[Withdraw], unknown: Set[NotificationId]) -> set[NotificationId]:
        """Return those of *orders* that the log has after all: *unknown* to the store, or recorded while it was asked.

        Whatever the store has said of these, a worker of the log may have begun.
        """
        asked = [each for each in orders if each.id in unknown]
        recent = self._accepting.recent
        ours = {each.id for each in asked if (made := recent.get(each.id)) and made.app == each.app}
        ours |= await self._unrecorded.among({each.id for each in asked} - ours)
        return ours | await self._of_log([each for each in orders if each.id not in ours])

    async def depth(self, lane: Lane) -> int:
        """See Work; counts what this process holds, and what its partitions have beyond that."""
        ours = self._assignment.task_queue.ready(lane) + self._assignment.behind(lane)
        try:
            return ours + await self._stored.depth(lane)
        except Unavailable:
            return ours

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work; what is recorded, or where that is less what this process has of the log.

        What is not read yet has no known app; it counts as far as it is not recorded.
        """
        queued = self._assignment.task_queue.by_app()
        try:
            found = queued | Counter(await self._stored.backlog(now, counts_from))
        except Unavailable:
            found = queued
        recorded_more = found - queued
        for lane in Lane:
            known = sum(n for (of_lane, _), n in recorded_more.items() if of_lane is lane)
            if (unread := self._assignment.behind(lane) - known) > 0:
                found[lane, None] = unread
        return found

    async def lag(self) -> Lags:
        """See Work; the larger count and the older one of what is recorded and what this process has of the log."""
        try:
            recorded = await self._stored.lag()
        except Unavailable:
            recorded = {}
        queued, oldest = self._assignment.task_queue.by_app(), self._assignment.task_queue.oldest()
        found: dict[tuple[Lane, AppId | None], AppLag] = dict(recorded)
        for key, n in queued.items():
            known = found.get(key, AppLag(0))
            since = [at for at in (known.oldest, oldest.get(key)) if at is not None]
            found[key] = AppLag(max(n, known.open), min(since, default=None))
        for lane in Lane:
            counted = sum(max(0, recorded[key].open - queued[key]) for key in recorded if key[0] is lane)
            if (unread := self._assignment.behind(lane) - counted) > 0:
                found[lane, None] = AppLag(unread)
        return found

    async def stop(self) -> None:
        """Ask the store for no more work."""
        await self._beside.stop()

    def withdrawals_came(self) -> None:
        """End the waiting tasks of withdrawn notifications; those kept as a place alone are read again for that."""
        task_queue = self._assignment.task_queue
        doomed = {each for each in task_queue.each() if self._withdrawn.has(*_of(each))}
        task_queue.remove(doomed)
        for each in doomed:
            if isinstance(each, Shelved):
                each.due_at = _AT_ONCE  # also where it cannot be read again at first
                task_queue.wait(each, _AT_ONCE)
            else:
                self._cancel(each)

    def _cancel(self, entry: TaskEntry) -> None:
        why = self._withdrawn.why(entry.task.notification) or ""
        entry.part.leased.add(entry)
        self._order(entry, cancelled(entry.task, why, self._clock.now()))

    def _order(self, entry: TaskEntry, settled: Settled) -> PendingSettlement:
        order = PendingSettlement(entry, settled, self._withdrawn.why(settled.notification))
        self._scribes[entry.part.place.partition % len(self._scribes)].add(order)
        return order

    def _let_go(self, token: int, orders: Sequence[PendingSettlement]) -> None:
        """Forget what this lease has finished."""
        held = self._leases.get(token, {})
        for order in orders:
            entry = order.entry
            if entry.receipts == {} or entry.is_gone or order.settled.given_back:
                held.pop(entry.task.notification.id, None)
        if not held:
            self._leases.pop(token, None)


async def _first_of(asked: asyncio.Task[Lease], came: asyncio.Event) -> None:
    """Wait for an answer, or until something came."""
    coming = asyncio.create_task(came.wait())
    either: set[asyncio.Task[Any]] = {asked, coming}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        coming.cancel()


async def _each(accepting: Awaitable[list[Acceptance]], n: int) -> list[Acceptance]:
    """Return the answers to *n* items, each ``Unwritten`` where none of them could be written."""
    try:
        return await accepting
    except Unavailable as away:
        return [Unwritten(away)] * n


def _item(entry: TaskEntry) -> WorkItem:
    if entry.receipts is None:
        return WorkItem(entry.task.notification, None)
    targets = sorted(entry.receipts.values(), key=lambda receipt: receipt.n)
    return WorkItem(entry.task.notification, tuple(open_target(each) for each in targets if not each.is_intent))


def _of(waiting: WaitingTask) -> tuple[AppId, NotificationId]:
    """Return whose notification it is."""
    if isinstance(waiting, Shelved):
        return waiting.app, waiting.id
    return waiting.task.notification.app, waiting.task.notification.id


def _is_unknown(answer: Amended) -> bool:
    return answer == NotOpen(None)
