"""Progress: all targets of a notification and their receipts. Each change of it is one step. Pure.

Stores keep progress in rows of their own shape, load it, and write what a step says. What a change means is decided
here alone, so that every store comes to the same receipts, the same status and the same words in the journal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Self

import msgspec
from msgspec import Struct

from waypost.domain.amendment import (
    CONFIRMING,
    Confirm,
    Confirmation,
    Confirmed,
    LeasedTargets,
    NotConfirmed,
    NotOpen,
    TooLate,
    Withdrawal,
    Withdrawn,
)
from waypost.domain.delivery import FailureClass, Receipt, Target
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.moves import DeliveryMoved, Moved, NotificationMoved
from waypost.domain.settlement import Again, Cancelled, Change, Forget, Parked, Unstarted, apply
from waypost.domain.status import (
    DELIVERY_TRANSITIONS,
    FINAL,
    DeliveryStatus,
    NotificationStatus,
    final_status,
)
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.domain.waits import CONFIRMED_ELSEWHERE, WaitsFor, WaitsUntil, can_reach, is_needless

Receipts = Mapping[int, Receipt]
"""Receipts by the number of their target."""

_PENDING = DeliveryStatus.PENDING


class Stale(Struct, frozen=True):
    """A change that was refused, since its target was settled by somebody else first."""

    notification_id: NotificationId
    n: int
    attempt: int


class Step(Struct, frozen=True):
    """The result of one change to a notification's progress."""

    before: Progress
    progress: Progress
    moves: tuple[Moved, ...] = ()
    """The moves for the journal, in order."""
    taken: tuple[Change, ...] = ()
    """The changes that counted, as they were applied."""
    stale: tuple[Stale, ...] = ()

    @property
    def changed(self) -> list[Receipt]:
        """The receipts that are new or other than before."""
        before = self.before.receipts or {}
        return [each for n, each in (self.progress.receipts or {}).items() if before.get(n) is not each]

    @property
    def finished(self) -> bool:
        """Whether the notification ended with this step."""
        return self.progress.is_final and not self.before.is_final

    @property
    def routed(self) -> bool:
        """Whether its targets are known since this step."""
        return self.before.receipts is None and self.progress.receipts is not None


class Progress(Struct, frozen=True):
    """All targets of a notification and what became of them."""

    app: AppId
    id: NotificationId
    user_id: UserId
    status: NotificationStatus | None
    """``pending`` or final; None while nothing of it is stored, as of a bulk job's recipient."""
    receipts: Receipts | None
    """The receipts; None until it is routed. Of a final notification they need not be loaded."""
    withdrawn: str | None = None
    """The reason why it was taken back, where it was."""

    @property
    def is_final(self) -> bool:
        """Whether nothing of the notification is open."""
        return self.status in FINAL

    def settle(
        self,
        changes: Sequence[Change],
        now: Instant,
        targets: Sequence[Target] | None = None,
        verdict: NotificationStatus | None = None,
    ) -> Step:
        """Apply what became of a leased item: see ports.work.Settled.

        Changes compare-and-set by (target, attempt): what loses is stale, and so is a change of a target that another
        list was stored for first. A withdrawn notification makes no further attempt. The change that closes the last
        open target gives the final status. A target whose sibling was settled begins its wait with this step.
        """
        if self.is_final:
            return Step(self, self, stale=tuple(self._stale(change) for change in changes))
        moves: list[Moved] = []
        receipts, renumbered = self._listed(targets, now, moves)
        taken: list[Change] = []
        stale: list[Stale] = []
        for asked in changes:
            change = self._unless_over(asked, receipts)
            before = None if receipts is None or asked.n in renumbered else receipts.get(asked.n)
            after = None if before is None else apply(before, change)
            if receipts is None or before is None or after is None:
                stale.append(self._stale(asked))
                continue
            taken.append(change)
            receipts[change.n] = after
            if after is not before and (change.made is not None or not (after.is_intent or after.status is _PENDING)):
                moves.append(self._moved(after, change))
        if receipts is not None:
            self._follow(receipts, now, moves)
        ended, last = self._with(receipts)._ended(now, verdict if receipts is None else None)
        return Step(self, ended, (*moves, *last), tuple(taken), tuple(stale))

    def end(self, status: NotificationStatus, now: Instant) -> Step:
        """End it with *status*; the caller knows what became of its targets."""
        ended, moves = self._ended(now, status)
        return Step(self, ended, moves)

    def withdraw(self, why: str | None, held: LeasedTargets, now: Instant) -> tuple[Step, Withdrawal]:
        """Take back what no worker has; what is *held* ends with its present attempt.

        *why* None ends what came back of a notification withdrawn before, for the reason given then.
        """
        why = why or self.withdrawn
        if self.is_final or why is None:
            return Step(self, self), NotOpen(self.status)
        marked = msgspec.structs.replace(self, withdrawn=why)
        if self.receipts is None:
            if held.whole:
                return Step(self, marked), TooLate(0)
            ended, moves = marked._ended(now, NotificationStatus.CANCELLED)
            return Step(self, ended, moves), Withdrawn(0)
        in_hand = self._in_hand(held)
        free = [each for n, each in self.receipts.items() if each.status is _PENDING and n not in in_hand]
        changes = [Change(each.n, each.attempt + 1, Cancelled(why), now) for each in free]
        cancelled = [applied(receipt, change) for receipt, change in zip(free, changes, strict=True)]
        after = dict(self.receipts) | {each.n: each for each in cancelled}
        ended, last = marked._with(after)._ended(now)
        moves = tuple(self._moved(each, change) for each, change in zip(cancelled, changes, strict=True))
        step = Step(self, ended, (*moves, *last), tuple(changes))
        gone = sum(n in in_hand or _handed_over(each) for n, each in after.items())
        still_held = any(n in in_hand and each.is_open for n, each in after.items())
        return step, TooLate(gone) if still_held else Withdrawn(len(cancelled), gone)

    def confirm(self, order: Confirm, held: LeasedTargets, now: Instant) -> tuple[Step, Confirmation]:
        """Note what is known of a target that was handed over; its status goes up only, also after the end.

        What waits for it and is not *held* is cancelled, unless it waits for more; what was ``sent`` may come back,
        and is not waited for then. All receipts must be loaded.
        """
        known = self.receipts or {}
        before = known.get(order.target)
        if before is None or before.is_open or before.is_newer:
            return Step(self, self), NotConfirmed(None if before is None else before.status)
        if order.status not in CONFIRMING or order.status not in DELIVERY_TRANSITIONS[before.status]:
            return Step(self, self), NotConfirmed(before.status)
        after = _reported(before, order)
        receipts = {**known, after.n: after}
        is_dead = order.is_dead and bool(before.attempts)
        gone_since, token_hash = (order.at, before.attempts[-1].token_hash) if is_dead else (None, None)
        moves: list[Moved] = [self._moved_at(after, order.at, gone_since, token_hash, before=before.status)]
        taken = () if self.is_final else self._follow(receipts, now, moves, self._in_hand(held))
        ended, last = self._with(receipts)._ended(now)
        return Step(self, ended, (*moves, *last), tuple(taken)), Confirmed(order.status)

    def _listed(
        self, targets: Sequence[Target] | None, now: Instant, moves: list[Moved]
    ) -> tuple[dict[int, Receipt] | None, set[int]]:
        """Return the receipts to change, and the numbers that name another device than the first stored list."""
        if self.receipts is not None:
            known = dict(self.receipts)
            numbered = {n: each.device_id for n, each in known.items()}
            return known, {each.n for each in targets or () if numbered.get(each.n) != each.device_id}
        if targets is None:
            return None, set()
        receipts = {target.n: self._receipt(target, now) for target in targets}
        moves += [self._moved_at(each, now) for each in receipts.values() if not each.is_open]
        return receipts, set()

    def _receipt(self, target: Target, now: Instant) -> Receipt:
        key = (self.id, target.n, target.device_id, target.channel)
        if target.suppressed is not None:
            return Receipt(*key, DeliveryStatus.SUPPRESSED, reason=target.suppressed, resolved_at=now)
        if target.waits is None:
            return Receipt(*key, _PENDING, due_at=now)
        if self.withdrawn is not None:
            return Receipt(*key, DeliveryStatus.CANCELLED, reason=self.withdrawn, resolved_at=now, waits=target.waits)
        due_at = target.waits.at if isinstance(target.waits, WaitsUntil) else None
        return Receipt(*key, _PENDING, due_at=due_at, waits=target.waits)

    def _follow(
        self, receipts: dict[int, Receipt], now: Instant, moves: list[Moved], in_hand: Collection[int] | None = None
    ) -> list[Change]:
        """Let what waits for a sibling begin its wait where that was settled, or end where it is not needed any more.

        Which are leased is known as *in_hand*; where it is not, only what is not due yet ends.
        """
        ended: list[Change] = []
        for n in sorted(n for n, each in receipts.items() if each.waits is not None):
            receipt = receipts[n]
            wait = receipt.waits
            if not isinstance(wait, WaitsFor) or receipt.status is not _PENDING:
                continue
            siblings = _siblings(wait, n, receipts)
            is_early = receipt.due_at is None or receipt.due_at > now
            is_free = is_early if in_hand is None else n not in in_hand
            if is_free and is_needless(wait, (each.status for each in siblings)):
                change = Change(n, receipt.attempt + 1, Cancelled(self.withdrawn or CONFIRMED_ELSEWHERE), now)
                receipts[n] = applied(receipt, change)
                moves.append(self._moved(receipts[n], change))
                ended.append(change)
            elif is_early and not (receipt.retries or receipt.throttles):  # attempts of rounds before do not count
                due_at = _due_at(receipt, wait, siblings, now)
                if due_at != receipt.due_at:
                    receipts[n] = msgspec.structs.replace(receipt, due_at=due_at)
        return ended

    def _in_hand(self, held: LeasedTargets) -> Collection[int]:
        """List the targets with a worker; where the notification is leased whole and routed, all but waiting ones."""
        if not held.whole:
            return held.targets
        return {n for n, each in (self.receipts or {}).items() if each.waits is None or n in held.targets}

    def _stale(self, change: Change) -> Stale:
        return Stale(self.id, change.n, change.attempt)

    def _unless_over(self, change: Change, receipts: Receipts | None) -> Change:
        """Return the change, or a cancellation where it would retry a target that is withdrawn or not needed now."""
        if not isinstance(change.settlement, Again | Parked | Unstarted):
            return change
        why, wait = self.withdrawn, None
        if why is None and receipts is not None and change.n in receipts:
            wait = receipts[change.n].waits
        if receipts is not None and isinstance(wait, WaitsFor):
            stands = [each.status for each in _siblings(wait, change.n, receipts)]
            why = CONFIRMED_ELSEWHERE if is_needless(wait, stands) else None
        return change if why is None else msgspec.structs.replace(change, settlement=Cancelled(why))

    def _with(self, receipts: Receipts | None) -> Self:
        return msgspec.structs.replace(self, receipts=receipts)

    def _ended(self, now: Instant, verdict: NotificationStatus | None = None) -> tuple[Progress, tuple[Moved, ...]]:
        """Set the final status where *verdict* gives one or no target is open, and return the move that says so."""
        status = verdict
        if status is None and self.receipts is not None and not any(each.is_open for each in self.receipts.values()):
            status = final_status(each.status for each in self.receipts.values())
        if status is None and self.status is None:
            status = NotificationStatus.PENDING  # from now on it is stored
        if status is None or status is self.status:
            return self, ()
        reason = self.withdrawn if status is NotificationStatus.CANCELLED else None
        move = NotificationMoved(self.app, self.id, self.user_id, self.status, status, now, reason)
        return msgspec.structs.replace(self, status=status), (move,)

    def _moved(self, after: Receipt, change: Change) -> DeliveryMoved:
        gone_since = change.settlement.since if isinstance(change.settlement, Forget) else None
        token_hash = None if change.made is None else change.made.token_hash
        return self._moved_at(after, change.at, gone_since, token_hash, change.is_use)

    def _moved_at(
        self,
        after: Receipt,
        at: Instant,
        gone_since: Instant | None = None,
        token_hash: bytes | None = None,
        is_use: bool = False,
        before: DeliveryStatus = _PENDING,
    ) -> DeliveryMoved:
        """Build the journal's entry for a target; an intent was never more than pending."""
        named = (self.app, self.id, self.user_id, after.n, after.device_id, after.attempt)
        came = (before, after.status, at, after.code, after.reason)
        return DeliveryMoved(*named, *came, gone_since, token_hash, is_use)


def applied(receipt: Receipt, change: Change) -> Receipt:
    """Apply a change that cannot be stale to a receipt."""
    after = apply(receipt, change)
    assert after is not None, "an open receipt takes its next attempt"
    return after


def _siblings(wait: WaitsFor, n: int, receipts: Receipts) -> list[Receipt]:
    """List the receipts that target *n* waits for."""
    return [receipts[each] for each in wait.siblings if each < n and each in receipts]


def _due_at(receipt: Receipt, wait: WaitsFor, siblings: Sequence[Receipt], now: Instant) -> Instant | None:
    """Return when a target is due that waits for *siblings*; None while nothing was written of them."""
    if not any(each.is_open or can_reach(wait, each.status) for each in siblings):
        return now
    if receipt.due_at is not None or all(each.is_untouched for each in siblings):
        return receipt.due_at
    settled = [each.resolved_at for each in siblings if each.resolved_at is not None and not each.is_open]
    return later(min(settled, default=now), wait.seconds * SECOND_MS)


def _reported(receipt: Receipt, order: Confirm) -> Receipt:
    """Return *receipt* as its provider or its device reported it."""
    status, at = order.status, order.at
    if status is DeliveryStatus.FAILED:
        why, failed = order.why or "came back", FailureClass.TERMINAL
        return msgspec.structs.replace(
            receipt, status=status, resolved_at=at, code=order.code, reason=why, failure_class=failed
        )
    return msgspec.structs.replace(receipt, status=status, resolved_at=at, sent_at=receipt.sent_at or at, reason=None)


def _handed_over(receipt: Receipt) -> bool:
    return receipt.attempt > 0 and receipt.status is not DeliveryStatus.CANCELLED
