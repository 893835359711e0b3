"""Settling what was leased: as everywhere, but that claims say whose it is, and end with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from waypost.domain.amendment import LeasedTargets
from waypost.domain.ids import NotificationId
from waypost.domain.progress import Stale
from waypost.domain.settlement import Again, Change, Intent, Unstarted
from waypost.domain.time import Instant
from waypost.ports.work import Settled
from waypost.stores.sql.amend import TakeBack, take_back
from waypost.stores.sql.claims.claims import HANDED_OVER, Claimed, Claims, is_member
from waypost.stores.sql.outbox.entries import WHOLE, Waiting, write_waiting
from waypost.stores.sql.pending_changes import PendingChange, PendingChanges
from waypost.stores.sql.plain_settlements import PlainSettlements
from waypost.stores.sql.settle import settle_all
from waypost.stores.sql.transaction import OperationKind, Transaction


class Report(Struct, frozen=True):
    """The settlements by *member* of what it leased."""

    member: int
    settled: tuple[Settled, ...]
    publishes: bool = False
    """Whether what is handed over goes to the outbox, too."""
    tells_of_waiting: bool = False
    """Whether what is tried again later does."""


def _run(transaction: Transaction, ops: Sequence[Report]) -> list[list[Stale]]:
    ids = [settled.notification.id for op in ops for settled in op.settled]
    books = _Books(transaction, ids)
    stale = [books.settle(op) for op in ops]
    books.write(publishes=any(op.publishes for op in ops))
    return stale


SETTLE: OperationKind[Report, list[Stale]] = OperationKind("settle", _run, durable=False, patient=True)
"""What the server forgets in a crash is leased still: its worker lets go of it, and it is sent again."""
INTEND: OperationKind[Report, list[Stale]] = OperationKind("intend", _run, durable=True, patient=True)
"""A settle that records intents: their bytes leave only when this would survive a loss of power."""


class _Books:
    """The notifications of a transaction, and the claims on them."""

    def __init__(self, transaction: Transaction, ids: Sequence[NotificationId]) -> None:
        self._transaction = transaction
        self._cases = PendingChanges(transaction, ids, by_shard=False)
        self._straight = PlainSettlements(transaction)
        self._claims = Claims(transaction, ids, locked=False)
        self._waiting: list[Waiting] = []

    def settle(self, report: Report) -> list[Stale]:
        """Apply one report; what is not the member's is refused."""
        if not is_member(self._transaction.connection, report.member):
            return [stale for settled in report.settled for stale in settled.refused()]
        return [stale for settled in report.settled for stale in self._settle(report, settled)]

    def write(self, *, publishes: bool) -> None:
        """Write everything that changed."""
        self._straight.write()
        self._cases.write()
        self._claims.write(publishes=publishes)
        write_waiting(self._transaction, self._waiting)

    def _settle(self, report: Report, settled: Settled) -> list[Stale]:
        held = self._claims.held_by(report.member, settled.notification.id)
        mine = settled if WHOLE in held else _part_of(settled, held)
        stale = [_stale(settled, change) for change in settled.changes if change not in mine.changes]
        if not held:
            return stale
        stale += settle_all(self._transaction, self._cases, self._straight, [mine]).stale
        case = self._cases.get(settled.notification.id)
        if case is None:  # it is a newer version's to go on with, or has left: then the next lease finds nothing
            for part in held.values():
                part.let_go()
        elif case.progress.is_final:
            self._end_all(settled)
        else:
            self._move_on(case, report.member, held, mine)
            if report.tells_of_waiting:
                self._waiting += _waiting(case, mine, self._transaction.now)
        return stale

    def _move_on(self, case: PendingChange, member: int, held: dict[int, Claimed], settled: Settled) -> None:
        """Keep what is still under way, release what was given back, end the rest."""
        changes = {change.n: change for change in settled.changes}
        progress = case.progress
        if WHOLE in held and progress.receipts is not None:
            held.pop(WHOLE).end()
            self._hand_on(case, member, changes, is_back=settled.given_back)
        for n, part in held.items():
            change = changes.get(n)
            if change is not None:
                _end_or_let_go(part, change)
            elif settled.given_back and _is_intent(case, n):
                part.end()
            elif settled.given_back:
                part.let_go()
        if progress.withdrawn is not None:
            self._close(case)

    def _hand_on(self, case: PendingChange, member: int, changes: Mapping[int, Change], *, is_back: bool) -> None:
        """Claim the targets of what was fresh: for *member* those it goes on with, for nobody those that came back."""
        for n, receipt in (case.progress.receipts or {}).items():
            change = changes.get(n)
            if not receipt.is_open or (change is None and receipt.waits is not None):
                continue  # what waits is nobody's until it is due
            if change is not None and not isinstance(change.settlement, Intent | Unstarted):
                continue
            came_back = is_back if change is None else isinstance(change.settlement, Unstarted)
            self._claims.add(case.id, n, case.progress.app, case.lane, None if came_back else member)
            if came_back:
                case.put_off(n, Instant(HANDED_OVER))

    def _close(self, case: PendingChange) -> None:
        """Close what came back of a withdrawn notification: it is not sent."""
        held = self._claims.held(case.id)
        order = TakeBack(case.progress.app, case.id, None, LeasedTargets(WHOLE in held, frozenset(held)))
        take_back(self._transaction, case, order)
        for part in self._claims.of(case.id).values():
            if part not in held.values():
                part.end()

    def _end_all(self, settled: Settled) -> None:
        for part in self._claims.of(settled.notification.id).values():
            part.end()


def _end_or_let_go(part: Claimed, change: Change) -> None:
    """End or release the claim on a target as *change* says; leave it for an intent."""
    if isinstance(change.settlement, Unstarted):
        part.let_go()
    elif not isinstance(change.settlement, Intent):
        part.end()


def _waiting(case: PendingChange, settled: Settled, now: Instant) -> list[Waiting]:
    """List the targets that are tried again later than *now*."""
    receipts = case.progress.receipts or {}
    tried = [each.n for each in settled.changes if isinstance(each.settlement, Again) and each.n in receipts]
    due = [(n, receipts[n].due_at) for n in tried]
    return [Waiting(case.id, n, case.progress.app, case.lane, at) for n, at in due if at is not None and at > now]


def _is_intent(case: PendingChange, n: int) -> bool:
    return n != WHOLE and (case.progress.receipts or {})[n].is_intent


def _part_of(settled: Settled, held: dict[int, Claimed]) -> Settled:
    changes = tuple(change for change in settled.changes if change.n in held)
    return msgspec.structs.replace(settled, changes=changes, verdict=None)


def _stale(settled: Settled, change: Change) -> Stale:
    return Stale(settled.notification.id, change.n, change.attempt)
