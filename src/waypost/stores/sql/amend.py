"""Amending: what one transaction takes back or confirms, given what is leased now (its writes are in cases.py).

A notification that is leased whole when it is withdrawn leaves the tail of fresh work (``due_at`` = now), so that it is
not sent should its worker die: whoever releases it then finds it withdrawn and closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from waypost.domain.amendment import (
    Amended,
    Collapse,
    Confirm,
    LeasedTargets,
    NotConfirmed,
    NotOpen,
    Recover,
    Recovered,
    Recovery,
    Remedy,
    Reschedule,
    Rescheduled,
    Rescheduling,
    SingleAmendment,
    Supersede,
    TooLate,
    Withdraw,
    Withdrawal,
)
from waypost.domain.ids import SHARDS, AppId, NotificationId, created_at
from waypost.domain.recovery import recover
from waypost.domain.rescheduling import reschedule
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.pending_changes import PendingChange, PendingChanges
from waypost.stores.sql.rows import WITH_CONTENT, content_of
from waypost.stores.sql.transaction import OperationKind, Transaction

_OLDER = (
    "SELECT notification.id, body, variables"  # noqa: S608 - columns
    f" FROM {WITH_CONTENT.replace('notification', 'notification INDEXED BY notification_collapsing', 1)}"
    " WHERE app = ? AND user_id = ? AND notification.id < ? AND collapses = 1 AND finished_at IS NULL"
    " AND status = 'pending' AND (scheduled_at IS NULL OR scheduled_at <= ?) ORDER BY notification.id DESC LIMIT 1000"
)
"""The open ones of a user that have a collapse key, whichever; the newest thousand: a name may have had any number."""


class TakeBack(Struct, frozen=True):
    """An order to withdraw one notification; what is leased stays with its worker."""

    app: AppId
    id: NotificationId
    why: str | None
    """The reason; None closes what was withdrawn before, for the reason given then."""
    held: LeasedTargets = LeasedTargets()


class Note(Struct, frozen=True):
    """An order to note a confirmation; what is leased stays with its worker."""

    confirm: Confirm
    held: LeasedTargets = LeasedTargets()

    @property
    def id(self) -> NotificationId:
        """The notification that it is about."""
        return self.confirm.id


class Aid(Struct, frozen=True):
    """An order to recover what nobody has; what is leased stays with its worker."""

    recover: Recover
    held: LeasedTargets = LeasedTargets()

    @property
    def id(self) -> NotificationId:
        """The notification that it is about."""
        return self.recover.id


class PutOff(Struct, frozen=True):
    """An order to send at another time what waits for its own; what is leased stays with its worker."""

    reschedule: Reschedule
    held: LeasedTargets = LeasedTargets()

    @property
    def id(self) -> NotificationId:
        """The notification that it is about."""
        return self.reschedule.id


Order = TakeBack | Note | Aid | PutOff
Orders = Sequence[Order]
Answers = list[Amended | None]


def order_of(amendment: SingleAmendment, held: LeasedTargets) -> Order:
    """Build the order for *amendment*, given what is leased."""
    match amendment:
        case Withdraw(app, notification_id, why):
            return TakeBack(app, notification_id, why, held)
        case Confirm():
            return Note(amendment, held)
        case Recover():
            return Aid(amendment, held)
        case Reschedule():
            return PutOff(amendment, held)
        case _:
            assert_never(amendment)


def to_confirm(orders: Sequence[Order]) -> frozenset[NotificationId]:
    """Return the notifications of which all receipts are needed, final or not."""
    return frozenset(order.id for order in orders if isinstance(order, Note))


def _run(transaction: Transaction, ops: Sequence[Orders]) -> list[Answers]:
    """Answer each order; None for what is not there, or another process's by now (PendingChanges)."""
    orders = [order for op in ops for order in op]
    cases = PendingChanges(transaction, (order.id for order in orders), to_confirm=to_confirm(orders))
    found = [[(_mine(transaction, cases.get(order.id)), order) for order in op] for op in ops]
    answers = [[None if case is None else carry_out(transaction, case, order) for case, order in op] for op in found]
    cases.write()
    return answers


AMEND: OperationKind[Orders, Answers] = OperationKind("amend", _run, durable=True)
CLOSE: OperationKind[Orders, Answers] = OperationKind("close", _run, durable=False, patient=True)
"""The operation that closes what was withdrawn while it was leased, and was given back or lost."""


def carry_out(transaction: Transaction, case: PendingChange | None, order: Order) -> Amended:
    """Apply one order to its *case*; somebody else writes it."""
    if isinstance(order, TakeBack):
        return take_back(transaction, case, order)
    if isinstance(order, Aid):
        return _help(transaction, case, order)
    if isinstance(order, PutOff):
        return _put_off(transaction, case, order)
    if case is None or case.progress.app != order.confirm.app:
        return NotConfirmed(None)
    step, answer = case.progress.confirm(order.confirm, _held(case, order), transaction.now)
    case.take(transaction, step)
    return answer


def take_back(transaction: Transaction, case: PendingChange | None, order: TakeBack) -> Withdrawal:
    """Apply one withdrawal to its *case*; somebody else writes it."""
    if case is None or case.progress.app != order.app:
        return NotOpen(None)
    step, answer = case.progress.withdraw(order.why, _held(case, order), transaction.now)
    case.take(transaction, step)
    if isinstance(answer, TooLate) and case.progress.receipts is None:
        case.due_at = transaction.now
        case.moved = True
    return answer


def _help(transaction: Transaction, case: PendingChange | None, order: Aid) -> Recovery:
    """Apply one remedy to its *case*; what is overdue as a whole leaves the tail of fresh work for the timer."""
    if case is None or case.progress.app != order.recover.app:
        return NotOpen(None)
    step, answer = recover(case.progress, order.recover, _held(case, order), transaction.now)
    case.take(transaction, step)
    is_again = order.recover.remedy is Remedy.AGAIN and isinstance(answer, Recovered)
    if is_again and case.progress.receipts is None and not case.progress.is_final:
        case.due_at = transaction.now
        case.moved = True
    return answer


def _put_off(transaction: Transaction, case: PendingChange | None, order: PutOff) -> Rescheduling:
    if case is None or case.progress.app != order.reschedule.app:
        return NotOpen(None)
    held = _held(case, order)
    answer = reschedule(case.progress, case.due_at, order.reschedule, held, transaction.now)
    if isinstance(answer, Rescheduled):
        case.reschedule(answer.at)
    return answer


def _mine(transaction: Transaction, case: PendingChange | None) -> PendingChange | None:
    """Return the case, unless it is the log's and waits in a shard that is another process's by now."""
    if case is None or case.shard < SHARDS or case.progress.is_final or transaction.owned is None:
        return case
    return case if case.shard % SHARDS in transaction.owned else None


def _held(case: PendingChange, order: Order) -> LeasedTargets:
    """Return what is leased: of the log's, all that does not wait may be, which its workers alone know."""
    return order.held if case.shard < SHARDS else LeasedTargets(True, order.held.targets)


def older(connection: Connection, order: Supersede) -> list[NotificationId]:
    """List the notifications that a supersession is about: of a collapse key the open, due ones that are recorded."""
    if not isinstance(order.of, Collapse):
        return [order.of]
    rows = connection.execute(_OLDER, (order.app, order.of.user_id, order.by, created_at(order.by))).fetchall()
    return [row[0] for row in rows if content_of(row[1], row[2]).collapse_key == order.of.key]
