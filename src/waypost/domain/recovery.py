"""Recovery: which notifications are stuck, what is done about one, and what a remedy makes of its progress. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

import msgspec
from msgspec import Struct

from waypost.domain.amendment import LeasedTargets, NotOpen, Recover, Recovered, Recovery, Remedy, TooLate
from waypost.domain.content import Urgency
from waypost.domain.delivery import FailureClass, Receipt
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.progress import Progress, Step
from waypost.domain.sending_record import RecordStatus, SendingRecord
from waypost.domain.settlement import Change, Dead, Sent, Settlement
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant, later
from waypost.domain.waits import WaitsFor

STUCK = "stuck"
"""The code of a target that ended because nothing moved it."""
GHOST = "the record says that it was delivered"


class AlertType(StrEnum):
    """A type of alert."""

    STUCK_PROCESSING = "stuck_processing"
    ORPHANED_PENDING = "orphaned_pending"


class Thresholds(Struct, frozen=True):
    """The milliseconds without a change after which a notification counts as stuck."""

    processing_ms: int
    pending_ms: int


class Standing(Struct, frozen=True):
    """An open notification as the store has it."""

    app: AppId
    id: NotificationId
    expires_at: Instant
    """The end of its round."""
    created_at: Instant
    scheduled_at: Instant | None
    due_at: Instant | None
    """The time when it is looked at as a whole: 0 is at once; None where its targets are known."""
    urgency: Urgency = Urgency.NORMAL
    retry_policy: str | None = None
    receipts: tuple[Receipt, ...] = ()

    @property
    def status(self) -> NotificationStatus:
        """The status as it reads where nobody has it."""
        return NotificationStatus.PROCESSING if self.due_at is None else NotificationStatus.PENDING

    @property
    def retries(self) -> int:
        """The retries of the target that had the most."""
        return max((each.retries for each in self.receipts), default=0)

    @property
    def was_tried(self) -> bool:
        """Whether a provider may have been asked for a target that is open."""
        return any(each.attempt > 0 for each in self.receipts if each.is_open)


class Stuck(Struct, frozen=True):
    """A notification that nothing moves, and the reason why it is thought so."""

    standing: Standing
    type: AlertType
    reason: str


class Heal(Struct, frozen=True):
    """The decision to apply a remedy."""

    remedy: Remedy
    why: str


class Raise(Struct, frozen=True):
    """The decision to tell an operator."""

    reason: str


def stuck(standing: Standing, thresholds: Thresholds, now: Instant) -> Stuck | None:
    """Tell whether a notification is stuck; what waits for its retry, its time, a limit or a breaker is not.

    Such waits have a due time ahead. What is overdue may still wait its turn, so look twice.
    """
    if standing.due_at is not None:
        begun = standing.due_at or standing.created_at
        if begun > later(now, -thresholds.pending_ms):
            return None
        is_scheduled = standing.scheduled_at is not None
        reason = "its time came, and nobody took it" if is_scheduled else "nobody took it"
        return Stuck(standing, AlertType.ORPHANED_PENDING, f"{reason} for {_seconds(begun, now)}")
    bound = later(now, -thresholds.processing_ms)
    since = _waits_since(standing)
    if since > bound:
        return None
    return Stuck(standing, AlertType.STUCK_PROCESSING, f"no change for {_seconds(since, now)}")


def _waits_since(standing: Standing) -> Instant:
    """Return since when a target is due, or when it will be; where none ever will, when something changed last."""
    dated = [each for each in standing.receipts if each.is_open and each.due_at is not None]
    if not dated:
        return _last_change(standing, standing.receipts)
    return min(each.due_at or _last_change(standing, [each]) for each in dated)


def _last_change(standing: Standing, receipts: Sequence[Receipt]) -> Instant:
    times = [at for each in receipts for at in (each.last_attempt_at, each.resolved_at) if at is not None]
    return max([standing.created_at, *times])


def _seconds(since: Instant, now: Instant) -> str:
    return f"{(now - since) // 1000} s"


def decide(
    found: Stuck, record: SendingRecord | None, *, max_retries: int, may_retry: bool, was_retried: bool
) -> Heal | Raise:
    """Say what is done about a stuck notification (requirements S4-T5, and its line of the gaps).

    A record proves what became of it. Without one, what no provider was asked for is offered to
    workers again, once, where that *may_retry*; all else is for an operator.
    """
    if record is not None and record.is_of(found.standing.expires_at):
        match record.status:
            case RecordStatus.DELIVERED:
                return Heal(Remedy.SENT, GHOST)
            case RecordStatus.FAILED if max(record.retry_count, found.standing.retries) >= max_retries:
                return Heal(Remedy.FAILED, "the record says that it failed, and no retries are left")
            case RecordStatus.FAILED:
                return Raise(f"{found.reason}; the record says that it failed, and retries are left")
            case RecordStatus.PROCESSING:
                return Raise(f"{found.reason}; the record says that somebody is at it")
            case _:
                assert_never(record.status)
    if may_retry and not was_retried and not found.standing.was_tried:
        return Heal(Remedy.AGAIN, found.reason)
    return Raise(found.reason)


def recover(progress: Progress, order: Recover, held: LeasedTargets, now: Instant) -> tuple[Step, Recovery]:
    """Apply a remedy to what nobody has; what a worker *held* is left alone. All receipts must be loaded.

    Where its targets are not known yet, the store makes the whole of it due.
    """
    unchanged = Step(progress, progress)
    if progress.is_final:
        return unchanged, NotOpen(progress.status)
    if held.whole or held.targets:
        return unchanged, TooLate(0 if held.whole else len(held.targets))
    match order.remedy:
        case Remedy.LOOK:
            return unchanged, Recovered()
        case Remedy.AGAIN:
            return _again(progress, held, now)
        case Remedy.SENT:
            return _end(progress, Sent(""), NotificationStatus.SENT, now)
        case Remedy.FAILED:
            dead = Dead(STUCK, order.why, FailureClass.TERMINAL, letter=True)
            return _end(progress, dead, NotificationStatus.FAILED, now)
        case _:
            assert_never(order.remedy)


def _end(progress: Progress, how: Settlement, status: NotificationStatus, now: Instant) -> tuple[Step, Recovery]:
    open_ones = [each for each in (progress.receipts or {}).values() if each.is_open and not each.is_newer]
    if not progress.receipts:
        return progress.end(status, now), Recovered(1)
    changes = [Change(each.n, each.attempt + (not each.is_intent), how, now) for each in open_ones]
    return progress.settle(changes, now), Recovered(len(changes))


def _again(progress: Progress, held: LeasedTargets, now: Instant) -> tuple[Step, Recovery]:
    if progress.withdrawn is not None:
        step, _ = progress.withdraw(None, held, now)
        return step, Recovered(len(step.taken))
    if progress.receipts is None:
        return Step(progress, progress), Recovered(1)
    step = progress.settle((), now)  # what waits for nothing any more begins its wait, and what is over ends
    receipts = step.progress.receipts or {}
    due = {
        n: msgspec.structs.replace(each, due_at=now) for n, each in receipts.items() if _would_not_move(each, step, now)
    }
    return msgspec.structs.replace(
        step, progress=msgspec.structs.replace(step.progress, receipts=dict(receipts) | due)
    ), Recovered(len(due))


def _would_not_move(receipt: Receipt, step: Step, now: Instant) -> bool:
    """Tell whether an open target is overdue, or has no time and no sibling to get one from."""
    if not receipt.is_open or receipt.is_newer:
        return False
    if receipt.due_at is not None:
        return receipt.due_at <= now
    siblings = receipt.waits.siblings if isinstance(receipt.waits, WaitsFor) else ()
    receipts = step.progress.receipts or {}
    return not any(receipts[n].is_open for n in siblings if n in receipts and n < receipt.n)
