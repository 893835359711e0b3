"""Settling what was leased: as everywhere, but that entries of the outbox say whose it is, and end with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from waypost.adapters.sql.amend import TakeBack, take_back
from waypost.adapters.sql.cases import Case, Cases
from waypost.adapters.sql.relayed.outbox import AT_ONCE, WHOLE, Entry, Outbox, is_member
from waypost.adapters.sql.settle import settle_all
from waypost.adapters.sql.straight import StraightWay
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.amendment import Held
from waypost.domain.ids import NotificationId
from waypost.domain.progress import Stale
from waypost.domain.settlement import Change, Intent, Unstarted
from waypost.domain.time import Instant
from waypost.ports.work import Settled


class Report(Struct, frozen=True):
    """What *member* settles of what it leased."""

    member: int
    settled: tuple[Settled, ...]


def _run(transaction: Transaction, ops: Sequence[Report]) -> list[list[Stale]]:
    ids = [settled.notification.id for op in ops for settled in op.settled]
    books = _Books(transaction, ids)
    stale = [books.settle(op) for op in ops]
    books.write()
    return stale


SETTLE: Kind[Report, list[Stale]] = Kind("settle", _run, durable=True, patient=True)
"""Durable, intent or not: the lease is on record, and one whose settle the server forgot would never end."""


class _Books:
    """The notifications of a transaction, and what stands of them in the outbox."""

    def __init__(self, transaction: Transaction, ids: Sequence[NotificationId]) -> None:
        self._transaction = transaction
        self._cases = Cases(transaction, ids, by_shard=False)
        self._straight = StraightWay(transaction)
        self._outbox = Outbox(transaction, ids)

    def settle(self, report: Report) -> list[Stale]:
        """Fold one report in; what is not the member's is refused."""
        if not is_member(self._transaction.connection, report.member):
            return [stale for settled in report.settled for stale in settled.refused()]
        return [stale for settled in report.settled for stale in self._settle(report.member, settled)]

    def write(self) -> None:
        """Write everything that changed."""
        self._straight.write()
        self._cases.write()
        self._outbox.write()

    def _settle(self, member: int, settled: Settled) -> list[Stale]:
        held = self._outbox.held(settled.notification.id, member)
        mine = settled if WHOLE in held else _part_of(settled, held)
        stale = [_stale(settled, change) for change in settled.changes if change not in mine.changes]
        if not held:
            return stale
        stale += settle_all(self._transaction, self._cases, self._straight, [mine]).stale
        case = self._cases.get(settled.notification.id)
        if case is None or case.progress.is_final:
            self._end_all(settled)
        else:
            self._move_on(case, member, held, mine)
        return stale

    def _move_on(self, case: Case, member: int, held: dict[int, Entry], settled: Settled) -> None:
        """Keep what is still under way, let go of what was given back, end the rest."""
        changes = {change.n: change for change in settled.changes}
        progress = case.progress
        if WHOLE in held and progress.receipts is not None:
            held.pop(WHOLE).end()
            for n, receipt in progress.receipts.items():
                change = changes.get(n)
                if change is None and receipt.waits is not None:
                    continue  # nobody's until it is due
                if receipt.is_open and (change is None or isinstance(change.settlement, Intent | Unstarted)):
                    is_back = settled.given_back if change is None else isinstance(change.settlement, Unstarted)
                    self._outbox.add(case.id, n, progress.app, case.lane, None if is_back else member)
                    if is_back:
                        case.put_off(n, Instant(AT_ONCE))
        for n, entry in held.items():
            change = changes.get(n)
            if change is not None:
                _end_or_let_go(entry, change)
            elif settled.given_back and _is_intent(case, n):
                entry.end()
            elif settled.given_back:
                entry.let_go()
        if progress.withdrawn is not None:
            self._close(case)

    def _close(self, case: Case) -> None:
        """What came back of a withdrawn notification is not sent."""
        held = self._outbox.held(case.id)
        order = TakeBack(case.progress.app, case.id, None, Held(WHOLE in held, frozenset(held)))
        take_back(self._transaction, case, order)
        for entry in self._outbox.of(case.id).values():
            if entry not in held.values():
                entry.end()

    def _end_all(self, settled: Settled) -> None:
        for entry in self._outbox.of(settled.notification.id).values():
            entry.end()


def _end_or_let_go(entry: Entry, change: Change) -> None:
    """What *change* makes of the entry of its target; of an intent nothing yet."""
    if isinstance(change.settlement, Unstarted):
        entry.let_go()
    elif not isinstance(change.settlement, Intent):
        entry.end()


def _is_intent(case: Case, n: int) -> bool:
    return n != WHOLE and (case.progress.receipts or {})[n].is_intent


def _part_of(settled: Settled, held: dict[int, Entry]) -> Settled:
    changes = tuple(change for change in settled.changes if change.n in held)
    return msgspec.structs.replace(settled, changes=changes, verdict=None)


def _stale(settled: Settled, change: Change) -> Stale:
    return Stale(settled.notification.id, change.n, change.attempt)
