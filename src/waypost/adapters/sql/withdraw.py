"""Withdrawing: what one transaction takes back, given what is leased at this moment (its writes are in cases.py).

A notification that is leased whole leaves the tail of fresh work (``due_at`` = now), so that it is not sent should its
worker die: whoever releases it then finds it withdrawn and closes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.adapters.sql.cases import Case, Cases
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.progress import Held, NotOpen, TooLate, Withdrawal


class TakeBack(Struct, frozen=True):
    """An order to withdraw one notification; what is held stays with its worker."""

    app: AppId
    id: NotificationId
    why: str | None
    """None closes what was withdrawn before, for the reason given then."""
    held: Held = Held()


Orders = Sequence[TakeBack]


def _run(transaction: Transaction, ops: Sequence[Orders]) -> list[list[Withdrawal | None]]:
    """Answer each order; None for what is not there, or another process's by now (Cases)."""
    cases = Cases(transaction, (order.id for op in ops for order in op))
    found = [[(cases.get(order.id), order) for order in op] for op in ops]
    answers = [[None if case is None else take_back(transaction, case, order) for case, order in op] for op in found]
    cases.write()
    return answers


WITHDRAW: Kind[Orders, list[Withdrawal | None]] = Kind("withdraw", _run, durable=True)
CLOSE: Kind[Orders, list[Withdrawal | None]] = Kind("close", _run, durable=False, patient=True)
"""The end of what was withdrawn while it was leased, and was given back or lost."""


def take_back(transaction: Transaction, case: Case | None, order: TakeBack) -> Withdrawal:
    """Take one order into its *case*; somebody else writes it."""
    if case is None or case.progress.app != order.app:
        return NotOpen(None)
    step, answer = case.progress.withdraw(order.why, order.held, transaction.now)
    case.take(transaction, step)
    if isinstance(answer, TooLate) and case.progress.receipts is None:
        case.due_at = transaction.now
        case.moved = True
    return answer
