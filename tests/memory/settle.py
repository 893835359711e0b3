"""Settling in memory: the effect of one part of a leased item."""

from __future__ import annotations

from tests.memory.steps import let_go, take, withdraw
from tests.memory.store import LEASABLE, LeasedPart, MemoryStore, StoredRow
from waypost.domain.balance import Count
from waypost.domain.ids import NotificationId
from waypost.domain.moves import Moved
from waypost.domain.progress import Progress, Stale, Step
from waypost.domain.settlement import Change, Unstarted
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.ports.work import Settled


def settle(store: MemoryStore, token: int, settled: Settled, now: Instant) -> tuple[list[Moved], list[Stale]]:
    """Apply one item's changes; return those that lost their compare-and-set."""
    notification = settled.notification
    whole = LeasedPart(notification.id)
    if notification.id in store.told:
        if settled.given_back:
            store.holds.pop(whole, None)
            return [], []
        row = _insert(store, notification.id)
        progress = Progress(notification.app, notification.id, notification.user_id, None, None)
    elif notification.id in store.open:
        row = store.open[notification.id]
        progress = row.progress
    else:
        return [], settled.refused()
    step = settled.step_of(progress, now)
    moves = take(store, row, step, now)
    if step.routed:
        _hold_targets(store, whole, step)
    if step.finished:
        store.holds.pop(whole, None)
    let_go(store, token, step)
    if settled.given_back:
        moves += _give_back(store, token, row, now)
    return moves, list(step.stale)


def _insert(store: MemoryStore, notification_id: NotificationId) -> StoredRow:
    """Write the row of a bulk job's recipient, who had none until now."""
    told = store.told.pop(notification_id)
    row = StoredRow(store.count(), told.notification, LEASABLE, job=told.job)
    store.rows[notification_id] = store.open[notification_id] = row
    store.tally(told.notification, [(Count.RECIPIENTS, 1)])
    return row


def _hold_targets(store: MemoryStore, whole: LeasedPart, step: Step) -> None:
    """Let the holder of the notification hold each of its targets that is to be sent."""
    hold = store.holds.pop(whole, None)
    for n, receipt in (step.progress.receipts or {}).items():
        if hold is not None and receipt.waits is None and receipt.status is not DeliveryStatus.SUPPRESSED:
            store.holds[LeasedPart(whole.notification_id, n)] = hold


def _give_back(store: MemoryStore, token: int, row: StoredRow, now: Instant) -> list[Moved]:
    """Release all that this lease holds of *row*, except what may be on the wire: its deadline ends that."""
    mine = [part for part in store.held_parts(row, now) if store.holds[part].token == token]
    for part in mine:
        del store.holds[part]
    receipts = [row.receipts[part.n] for part in mine if part.n is not None]
    back = [Change(each.n, each.attempt + 1, Unstarted(), now) for each in receipts if not each.is_intent]
    step = row.progress.settle(back, now)
    let_go(store, token, step)
    moves = take(store, row, step, now)
    if row.withdrawn is not None and not row.is_final:
        moves += withdraw(store, row, None, now)[1]
    return moves
