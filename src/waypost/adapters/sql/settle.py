"""Settling: what one transaction makes of everything that was reported together (its writes are in cases.py)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from waypost.adapters.sql.cases import Case, Cases
from waypost.adapters.sql.straight import StraightWay, goes_straight
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.ids import NotificationId
from waypost.domain.settlement import Again, Cancelled, Change, Parked, Unstarted
from waypost.ports.work import Settled, Stale


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
    """Fold what was reported together into *cases*; somebody else writes them."""
    stale: list[Stale] = []
    withdrawn: set[NotificationId] = set()
    for settled in op:
        case = cases.get(settled.notification.id)
        if case is None or case.is_final:
            stale += [_stale(settled, change) for change in settled.changes]
            continue
        if case.is_unrouted and case.withdrawn is None and goes_straight(settled):
            straight.take(case, settled)
            continue
        stale += _settle(transaction, case, settled)
        if case.withdrawn is not None:
            withdrawn.add(case.id)
    return SettleResult(stale, frozenset(withdrawn))


def _settle(transaction: Transaction, case: Case, settled: Settled) -> list[Stale]:
    renumbered: set[int] = set()
    if settled.targets is not None:
        if case.is_unrouted:
            case.store_targets(transaction, settled.targets)
        else:
            renumbered = _renumbered(case, settled)
    stale = [
        _stale(settled, change)
        for change in settled.changes
        if change.n in renumbered or not case.apply(transaction, _unless_withdrawn(case, change))
    ]
    if settled.verdict is not None and case.is_unrouted:
        case.finish(transaction, settled.verdict)
    case.close(transaction)
    return stale


def _renumbered(case: Case, settled: Settled) -> set[int]:
    """The numbers that mean another device than in the list that was stored first: their changes are stale."""
    stored = {n: receipt.device_id for n, receipt in case.receipts.items()}
    return {target.n for target in settled.targets or () if stored.get(target.n) != target.device_id}


def _unless_withdrawn(case: Case, change: Change) -> Change:
    """A withdrawn notification makes no further attempt."""
    if case.withdrawn is None or not isinstance(change.settlement, Again | Parked | Unstarted):
        return change
    return msgspec.structs.replace(change, settlement=Cancelled(case.withdrawn))


def _stale(settled: Settled, change: Change) -> Stale:
    return Stale(settled.notification.id, change.n, change.attempt)
