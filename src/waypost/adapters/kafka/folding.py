"""What a settlement makes of a task: what goes to the ledger, what waits, what is left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from waypost.adapters.kafka.messages import Task
from waypost.domain.delivery import OpenTarget, Receipt
from waypost.domain.notification import Notification
from waypost.domain.settlement import Again, Cancelled, Change, Parked, Unstarted, apply
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.ledger import Decided
from waypost.ports.work import Settled, Stale

Receipts = dict[int, Receipt]
"""The open targets of a task by number; of the receipt only what the next attempt needs is kept."""


class Folded(Struct, frozen=True):
    """The outcome of one settlement."""

    receipts: Receipts | None
    """What is still under way; None: it was not routed, and is not over."""
    decided: Decided | None
    """For the ledger; None where nothing was decided."""
    waiting: tuple[Task, ...]
    """What is put down for later, as tasks of their own."""
    stale: tuple[Stale, ...]


def receipts_of(task: Task) -> Receipts | None:
    """The open targets that a task names."""
    if task.targets is None:
        return None
    return {target.n: _receipt(task.notification, target) for target in task.targets}


def fold(receipts: Receipts | None, settled: Settled, withdrawn: str | None, now: Instant) -> Folded:
    """Apply *settled* to the open targets of a task."""
    notification = settled.notification
    if settled.verdict is not None and not receipts:
        return Folded({}, _decided(settled, (), withdrawn), (), ())
    if receipts is None and settled.targets is not None:
        listed = (OpenTarget(each.n, each.device_id, each.channel, 0) for each in settled.targets if each.channel)
        receipts = {target.n: _receipt(notification, target) for target in listed}
        receipts |= {
            each.n: Receipt(notification.id, each.n, each.device_id, None, DeliveryStatus.PENDING)
            for each in settled.targets
            if each.channel is None and each.suppressed is None
        }
    elif receipts is None:
        return Folded(None, None, (), tuple(_stale(settled, change) for change in settled.changes))
    left = dict(receipts)
    taken: list[Change] = []
    stale: list[Stale] = []
    groups: dict[tuple[Instant, str | None], list[OpenTarget]] = {}
    for asked in settled.changes:
        change = _unless_withdrawn(asked, withdrawn)
        before = left.get(change.n)
        after = None if before is None else apply(before, change)
        if after is None:
            stale.append(_stale(settled, change))
            continue
        taken.append(change)
        if after.is_intent:
            left[change.n] = after
            continue
        del left[change.n]
        if after.is_open:
            due_at, condition = _wait_of(change, now)
            groups.setdefault((due_at, condition), []).append(open_target(after))
    waiting = tuple(Task(notification, tuple(each), *when) for when, each in groups.items())
    decided = _decided(settled, taken, withdrawn) if taken or settled.targets is not None else None
    return Folded(left, decided, waiting, tuple(stale))


def rest_of(notification: Notification, receipts: Receipts) -> Task | None:
    """What replaces a partly settled task: the targets still under way, but for those whose bytes may have left."""
    named = tuple(open_target(receipt) for receipt in receipts.values() if not receipt.is_intent)
    return Task(notification, named) if named else None


def open_target(receipt: Receipt) -> OpenTarget:
    """A target as a task names it."""
    assert receipt.channel is not None, "a target that no channel reaches is never open"
    return OpenTarget(
        receipt.n, receipt.device_id, receipt.channel, receipt.attempt, receipt.retries, receipt.throttles
    )


def cancelled(task: Task, why: str, now: Instant) -> Settled:
    """The end of a task whose notification was taken back before it was leased (again)."""
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


def _unless_withdrawn(change: Change, withdrawn: str | None) -> Change:
    """A withdrawn notification makes no further attempt."""
    if withdrawn is None or not isinstance(change.settlement, Again | Parked | Unstarted):
        return change
    return msgspec.structs.replace(change, settlement=Cancelled(withdrawn))


def _wait_of(change: Change, now: Instant) -> tuple[Instant, str | None]:
    match change.settlement:
        case Again(due_at):
            return due_at, None
        case Parked(condition, until):
            return until, condition
        case _:
            return now, None


def _stale(settled: Settled, change: Change) -> Stale:
    return Stale(settled.notification.id, change.n, change.attempt)
