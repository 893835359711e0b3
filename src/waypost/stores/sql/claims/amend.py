"""Amending: claims say what is leased, so that whoever is asked decides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from waypost.domain.amendment import (
    Amended,
    LeasedTargets,
    NotOpen,
    Recover,
    Recovered,
    Remedy,
    Reschedule,
    SingleAmendment,
    Withdraw,
)
from waypost.domain.ids import NotificationId
from waypost.stores.sql.amend import Order, carry_out, order_of, to_confirm
from waypost.stores.sql.claims.claims import Claims
from waypost.stores.sql.outbox.entries import WHOLE, Waiting, write_waiting
from waypost.stores.sql.pending_changes import PendingChange, PendingChanges
from waypost.stores.sql.transaction import OperationKind, Transaction

_Orders = Sequence[SingleAmendment]


def _run(transaction: Transaction, ops: Sequence[_Orders], *, tells: bool = False) -> list[list[Amended]]:
    """Answer each order; *tells*: others are told of what waits, and of its new time."""
    orders: list[Order] = [order_of(each, LeasedTargets()) for op in ops for each in op]
    ids = [order.id for order in orders]
    confirmed = to_confirm(orders)
    cases = PendingChanges(transaction, ids, by_shard=False, to_confirm=confirmed, receipts_locked=True)
    claims = Claims(transaction, ids)  # after these locks: what comes due is claimed by now, or not before the end
    answers = [[_amend(transaction, cases, claims, each) for each in op] for op in ops]
    cases.write()
    claims.write()
    if tells:
        write_waiting(transaction, [_waiting(case) for one in dict.fromkeys(ids) if (case := _put_off(cases, one))])
    return answers


AMEND: OperationKind[_Orders, list[Amended]] = OperationKind("amend", _run, durable=True)
AMEND_AND_TELL: OperationKind[_Orders, list[Amended]] = OperationKind("amend", partial(_run, tells=True), durable=True)


def _put_off(cases: PendingChanges, notification_id: NotificationId) -> PendingChange | None:
    case = cases.get(notification_id)
    return case if case is not None and case.rescheduled else None


def _waiting(case: PendingChange) -> Waiting:
    assert case.due_at is not None, "it was rescheduled"
    return Waiting(case.id, WHOLE, case.progress.app, case.lane, case.due_at)


def _amend(transaction: Transaction, cases: PendingChanges, claims: Claims, amendment: SingleAmendment) -> Amended:
    held = claims.held(amendment.id)
    case = cases.get(amendment.id)
    is_whole = WHOLE in (
        claims.of(amendment.id) if isinstance(amendment, Reschedule) else held
    )  # due: as good as taken
    answer = carry_out(transaction, case, order_of(amendment, LeasedTargets(is_whole, frozenset(held))))
    is_withdrawn = isinstance(amendment, Withdraw) and not isinstance(answer, NotOpen)
    is_helped = isinstance(answer, Recovered) and isinstance(amendment, Recover) and amendment.remedy != Remedy.LOOK
    receipts = {} if case is None else case.progress.receipts or {}
    for n, part in claims.of(amendment.id).items():
        is_over = n in receipts and not receipts[n].is_open
        if n not in held and (is_withdrawn or is_helped or is_over):
            part.end()
    return answer
