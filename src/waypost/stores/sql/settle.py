"""Settling: the changes that one transaction makes of what was reported together (its writes are in cases.py)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.ids import NotificationId
from waypost.domain.progress import Stale
from waypost.ports.work import Settled
from waypost.stores.sql.pending_changes import PendingChanges
from waypost.stores.sql.plain_settlements import PlainSettlements
from waypost.stores.sql.transaction import OperationKind, Transaction


class SettleResult(Struct, frozen=True):
    """The refused changes, and the withdrawn notifications, of which nothing becomes leasable again."""

    stale: list[Stale]
    withdrawn: frozenset[NotificationId]


def _run(transaction: Transaction, ops: Sequence[Sequence[Settled]]) -> list[SettleResult]:
    cases = PendingChanges(transaction, (settled.notification.id for op in ops for settled in op))
    plain = PlainSettlements(transaction)
    results = [settle_all(transaction, cases, plain, op) for op in ops]
    plain.write()
    cases.write()
    return results


SETTLE: OperationKind[Sequence[Settled], SettleResult] = OperationKind("settle", _run, durable=False, patient=True)
INTEND: OperationKind[Sequence[Settled], SettleResult] = OperationKind("intend", _run, durable=True, patient=True)
"""A settle that records intents: their bytes leave only when this would survive a loss of power."""


def settle_all(
    transaction: Transaction, cases: PendingChanges, plain: PlainSettlements, op: Sequence[Settled]
) -> SettleResult:
    """Apply what was reported together to *cases*; somebody else writes them."""
    stale: list[Stale] = []
    withdrawn: set[NotificationId] = set()
    for settled in op:
        if settled.is_plain and (row := cases.finish(settled.notification.id)) is not None:
            plain.take(row, settled)
            continue
        case = cases.get(settled.notification.id)
        if case is None:
            stale += settled.refused()
            continue
        progress = case.progress
        step = settled.step_of(progress, transaction.now)
        case.take(transaction, step)
        stale += step.stale
        if progress.withdrawn is not None:
            withdrawn.add(case.id)
    return SettleResult(stale, frozenset(withdrawn))
