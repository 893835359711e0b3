"""Settling: what one transaction makes of everything that was reported together (its writes are in cases.py)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.adapters.sql.cases import Cases
from waypost.adapters.sql.straight import StraightWay
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.ids import NotificationId
from waypost.domain.progress import Stale
from waypost.ports.work import Settled


class SettleResult(Struct, frozen=True):
    """What was refused, and which notifications are withdrawn: nothing of those becomes leasable again."""

    stale: list[Stale]
    withdrawn: frozenset[NotificationId]


def _run(transaction: Transaction, ops: Sequence[Sequence[Settled]]) -> list[SettleResult]:
    cases = Cases(transaction, (settled.notification.id for op in ops for settled in op))
    straight = StraightWay(transaction)
    results = [settle_all(transaction, cases, straight, op) for op in ops]
    straight.write()
    cases.write()
    return results


SETTLE: Kind[Sequence[Settled], SettleResult] = Kind("settle", _run, durable=False, patient=True)
INTEND: Kind[Sequence[Settled], SettleResult] = Kind("intend", _run, durable=True, patient=True)
"""A settle that records intents: their bytes leave only when this would survive a loss of power."""


def settle_all(transaction: Transaction, cases: Cases, straight: StraightWay, op: Sequence[Settled]) -> SettleResult:
    """Take what was reported together into *cases*; somebody else writes them."""
    stale: list[Stale] = []
    withdrawn: set[NotificationId] = set()
    for settled in op:
        case = cases.get(settled.notification.id)
        if case is None:
            stale += settled.refused()
            continue
        progress = case.progress
        if progress.receipts is None and progress.withdrawn is None and not progress.is_final and settled.is_plain:
            straight.take(case, settled)
            continue
        step = settled.step_of(progress, transaction.now)
        case.take(transaction, step)
        stale += step.stale
        if progress.withdrawn is not None:
            withdrawn.add(case.id)
    return SettleResult(stale, frozenset(withdrawn))
