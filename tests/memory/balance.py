"""The balance in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from tests.memory.store import LEASABLE, MemoryStore, StoredRow
from waypost.domain.balance import (
    Count,
    Difference,
    Line,
    Outline,
    Place,
    Seen,
    Sheet,
    Waiting,
    balance_of,
    differences_of,
    outline_of,
)
from waypost.domain.delivery import Receipt
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.ports.clock import Clock


class MemoryBalance:
    """See BalanceSheet."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def read(self, app: AppId | None = None) -> Sheet:
        """See BalanceSheet."""
        now = self._clock.now()
        notifications: defaultdict[Place, Counter[Waiting]] = defaultdict(Counter)
        deliveries: defaultdict[Place, Counter[Waiting]] = defaultdict(Counter)
        for row in self._store.open.values():
            place = row.notification.app, row.notification.lane
            notifications[place][_where(row, now)] += 1
            deliveries[place].update(_where_of(each) for each in row.receipts.values() if each.is_open)
        seen = {
            place: Seen(counted, notifications[place], deliveries[place]) for place, counted in self._by_place().items()
        }
        balances = {place: balance_of(each) for place, each in seen.items() if app in (None, place[0])}
        return Sheet(now, balances)

    async def outline(self, app: AppId) -> Outline:
        """See BalanceSheet."""
        counted: Counter[str] = Counter()
        for (of, _), words in self._by_place().items():
            counted.update(words if of == app else {})
        here = [row for row in self._store.open.values() if row.notification.app == app]
        return outline_of(counted, sum(_where(row, self._clock.now()) is Waiting.SCHEDULED for row in here))

    def refused(self, app: AppId, lane: Lane, n: int) -> None:
        """See BalanceSheet."""
        self._store.counted[app, lane, Count.REQUESTS] += n
        self._store.counted[app, lane, Count.REFUSED] += n

    async def audit(self) -> Sequence[Difference]:
        """See BalanceSheet."""
        counted = self._by_place()
        found: defaultdict[Place, dict[Line, Counter[str]]] = defaultdict(
            lambda: {Line.NOTIFICATIONS: Counter(), Line.DELIVERIES: Counter()}
        )
        for row in self._store.rows.values():
            rows = found[row.notification.app, row.notification.lane]
            rows[Line.NOTIFICATIONS][row.status] += 1
            standing = ("pending" if each.is_open else str(each.status) for each in row.receipts.values())
            rows[Line.DELIVERIES].update(standing)
        places = sorted({*counted, *found})
        return [each for place in places for each in differences_of(*place, counted.get(place, {}), found[place])]

    def _by_place(self) -> Mapping[Place, Counter[str]]:
        places: defaultdict[Place, Counter[str]] = defaultdict(Counter)
        for (app, lane, word), n in self._store.counted.items():
            places[app, lane][word] += n
        return places


def _where(row: StoredRow, now: Instant) -> Waiting:
    if row.due_at is None:
        return Waiting.PROCESSING
    return Waiting.SCHEDULED if row.due_at > now and row.due_at != LEASABLE else Waiting.WAITING


def _where_of(receipt: Receipt) -> Waiting:
    if receipt.status is DeliveryStatus.UNKNOWN:
        return Waiting.UNDER_WAY
    return Waiting.WAITING if receipt.parked is None else Waiting.PARKED
