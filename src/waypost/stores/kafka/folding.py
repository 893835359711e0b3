"""The effect of a settlement on a task: what goes to the ledger, what waits, what is left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from waypost.domain.delivery import OpenTarget, Receipt
from waypost.domain.notification import Notification
from waypost.domain.progress import Progress, Stale
from waypost.domain.settlement import Again, Cancelled, Change, Parked
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.ledger import Decided
from waypost.ports.work import Settled
from waypost.stores.kafka.messages import Task

Receipts = dict[int, Receipt]
"""The open targets of a task by number; only the receipt's fields that the next attempt needs are kept."""


class Folded(Struct, frozen=True):
    """The outcome of one settlement."""

    receipts: Receipts | None
    """The receipts still open; None: it was not routed, and is not over. What waits is left to the store."""
    decided: Decided | None
    """The entry for the ledger; None where nothing was decided."""
    waiting: tuple[Task, ...]
    """The targets put down for later, as tasks of their own."""
    stale: tuple[Stale, ...]


def receipts_of(task: Task) -> Receipts | None:
    """Return the open targets that a task names."""
    if task.targets is None:
        return None
    return {target.n: _receipt(task.notification, target) for target in task.targets}


def fold(receipts: Receipts | None, settled: Settled, withdrawn: str | None, now: Instant) -> Folded:
    """Apply *settled* to the open targets of a task."""
    notification = settled.notification
    if settled.verdict is not None and not receipts:
        return Folded({}, _decided(settled, (), withdrawn), (), ())
    named = (notification.app, notification.id, notification.user_id)
    progress = Progress(*named, NotificationStatus.PENDING, receipts, withdrawn)
    step = settled.step_of(progress, now)
    if step.progress.receipts is None:
        return Folded(None, None, (), step.stale)
    left = {n: each for n, each in step.progress.receipts.items() if each.is_open and each.waits is None}
    groups: dict[tuple[Instant, str | None], list[OpenTarget]] = {}
    for change in step.taken:
        after = left.get(change.n)
        if after is not None and not after.is_intent:
            groups.setdefault(_wait_of(change, now), []).append(open_target(left.pop(change.n)))
    waiting = tuple(Task(notification, tuple(each), *when) for when, each in groups.items())
    decided = _decided(settled, step.taken, withdrawn) if step.taken or settled.targets is not None else None
    return Folded(left, decided, waiting, step.stale)


def rest_of(notification: Notification, receipts: Receipts) -> Task | None:
    """Build what replaces a partly settled task: the targets still open, except those whose bytes may have left."""
    named = tuple(open_target(receipt) for receipt in receipts.values() if not receipt.is_intent)
    return Task(notification, named) if named else None


def open_target(receipt: Receipt) -> OpenTarget:
    """Build a target as a task names it."""
    assert receipt.channel is not None, "a target that no channel reaches is never open"
    return OpenTarget(
        receipt.n, receipt.device_id, receipt.channel, receipt.attempt, receipt.retries, receipt.throttles
    )


def cancelled(task: Task, why: str, now: Instant) -> Settled:
    """End a task whose notification was withdrawn before it was leased (again)."""
    if task.targets is None:
        return Settled(task.notification, verdict=NotificationStatus.CANCELLED)
    changes = tuple(Change(each.n, each.attempt + 1, Cancelled(why), now) for each in task.targets)
    return Settled(task.notification, changes)


def _receipt(notification: Notification, target: OpenTarget) -> Receipt:
    return Receipt(
        notification.id, target.n, target.device_id, target.channel, DeliveryStatus.PENDING,
        attempt=target.attempt, retries=target.retries, throttles=target.throttles,
    )  # fmt: skip


def _decided(settled: Settled, taken: Sequence[Change], withdrawn: str | None) -> Decided:
    return Decided(msgspec.structs.replace(settled, changes=tuple(taken), given_back=False), withdrawn)


def _wait_of(change: Change, now: Instant) -> tuple[Instant, str | None]:
    match change.settlement:
        case Again(due_at):
            return due_at, None
        case Parked(condition, until):
            return until, condition
        case _:
            return now, None
