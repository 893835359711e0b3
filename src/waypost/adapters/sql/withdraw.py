"""Withdrawing: what one transaction takes back, given what is leased at this moment (its writes are in cases.py).

A notification that is leased whole leaves the tail of fresh work (``due_at`` = now), so that it is not sent should its
worker die: whoever releases it then finds it withdrawn and closes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.adapters.sql.cases import Case, Cases
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.settlement import Cancelled, Change
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.ports.work import NotOpen, TooLate, Withdrawal, Withdrawn


class TakeBack(Struct, frozen=True):
    """An order to withdraw one notification; what is held stays with its worker."""

    app: AppId
    id: NotificationId
    why: str | None
    """None closes what was withdrawn before, for the reason given then."""
    held_whole: bool = False
    held: frozenset[int] = frozenset()


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
    """Fold one order into its *case*; somebody else writes it."""
    if case is None or case.app != order.app:
        return NotOpen(None)
    why = order.why or case.withdrawn
    if case.is_final or why is None:
        return NotOpen(case.status)
    case.withdrawn = why
    case.moved = True
    if case.is_unrouted:
        return _take_back_whole(transaction, case, order)
    held = frozenset(case.receipts) if order.held_whole else order.held  # routed since the order was made
    cancelled = sum(_cancel(transaction, case, receipt, held, why) for receipt in list(case.receipts.values()))
    case.close(transaction)
    gone = sum(receipt.n in held or _handed_over(receipt) for receipt in case.receipts.values())
    still_held = any(receipt.n in held and receipt.is_open for receipt in case.receipts.values())
    return TooLate(gone) if still_held else Withdrawn(cancelled, gone)


def _take_back_whole(transaction: Transaction, case: Case, order: TakeBack) -> Withdrawal:
    if order.held_whole:
        case.due_at = transaction.now
        return TooLate(0)
    case.finish(transaction, NotificationStatus.CANCELLED)
    return Withdrawn(0)


def _cancel(transaction: Transaction, case: Case, receipt: Receipt, held: frozenset[int], why: str) -> bool:
    if receipt.status is not DeliveryStatus.PENDING or receipt.n in held:
        return False
    change = Change(receipt.n, receipt.attempt + 1, Cancelled(why), transaction.now)
    return case.apply(transaction, change)


def _handed_over(receipt: Receipt) -> bool:
    return receipt.attempt > 0 and receipt.status is not DeliveryStatus.CANCELLED
