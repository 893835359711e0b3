"""The transactional boundary in memory: the shortest complete reading of the Work port."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from tests.memory.accept import accept
from tests.memory.amend import amend
from tests.memory.bulk import waiting
from tests.memory.settle import settle
from tests.memory.steps import close_intents, withdraw
from tests.memory.store import LEASABLE, Hold, LeasedPart, MemoryStore, StoredRow
from waypost.domain.amendment import Amended, Amendment
from waypost.domain.backlog import AppLag, Lags, Waiting
from waypost.domain.delivery import OpenTarget, Receipt
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.moves import Moved
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.domain.turns import in_turns, turn_after
from waypost.ports.clock import Clock
from waypost.ports.promises import EVERY_PROMISE
from waypost.ports.work import Acceptance, Lease, NewNotification, Replay, Settled, WorkItem


class MemoryWork:
    """The work of one worker on a store; leases end by the store's clock and are taken over by whoever asks next."""

    promises = EVERY_PROMISE

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work."""
        answers: list[Acceptance] = []
        moves: list[Moved] = []
        for item in batch:
            answer, moved = accept(self._store, item, self._clock.now())
            answers.append(answer)
            moves += moved
        self._store.record(moves)
        return answers

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work."""
        self._end_withdrawn()
        token = self._store.count()
        queues = self._leasable(lane)
        items: list[WorkItem] = []
        while queues and len(items) < n:
            app = _whose_turn(queues, self._store.last_app.get(lane))
            row, parts = queues[app].popleft()
            if not queues[app]:
                del queues[app]
            self._store.last_app[lane] = app
            self._hold(parts, Hold(token, until))
            items.append(_item(row, parts))
        if lane is Lane.BULK:
            items += self._recipients(n - len(items), Hold(token, until))
        return Lease(token, lane, tuple(items))

    def _recipients(self, n: int, hold: Hold) -> Iterator[WorkItem]:
        """Yield at most *n* recipients of running bulk jobs."""
        for told in waiting(self._store, self._clock.now())[: max(0, n)]:
            self._hold([LeasedPart(told.notification.id)], hold)
            yield WorkItem(told.notification, None, told.devices)

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work."""
        if lease.token in self._store.overtaken:
            return False
        for part, hold in self._store.holds.items():
            if hold.token == lease.token:
                self._store.holds[part] = Hold(lease.token, until)
        return True

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work."""
        stale: list[Stale] = []
        moves: list[Moved] = []
        for one in settled:
            moved, refused = settle(self._store, lease.token, one, self._clock.now())
            moves += moved
            stale += refused
        self._store.record(moves)
        return stale

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int:
        """See Work."""
        self._end_withdrawn()
        self._close_intents(now)
        waiting = self._waiting(now)
        due: dict[AppId, list[StoredRow | Receipt]] = {}
        for row in self._store.open.values():
            if row.due_at and row.due_at <= now:
                due.setdefault(row.notification.app, []).append(row)
        for receipt in waiting:
            if receipt.due_at is not None and receipt.due_at <= now:
                due.setdefault(self._store.rows[receipt.notification_id].notification.app, []).append(receipt)
        released = in_turns(n, [due[app] for app in sorted(due, key=self._turn_of_due)])
        parked = [[one for one in waiting if one.parked == name and one not in released] for name in lifted]
        rooms = zip(parked, lifted.values(), strict=True)
        released += in_turns(n - len(released), [receipts[:room] for receipts, room in rooms])
        for one in released:
            self._release(one)
        return len(released)

    def _turn_of_due(self, app: AppId) -> int:
        """Return the turn of an app: whoever was served longest ago comes first."""
        return self._store.released.get(app, 0)

    def _release(self, due: StoredRow | Receipt) -> None:
        if isinstance(due, StoredRow):
            due.due_at = LEASABLE
            self._store.released[due.notification.app] = self._store.count()
        else:
            self._store.ready[_part(due)] = self._store.count()
            self._store.released[self._store.rows[due.notification_id].notification.app] = self._store.count()

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        receipts = (receipt for row in self._store.open.values() for receipt in row.receipts.values())
        return frozenset(receipt.parked for receipt in receipts if receipt.parked is not None)

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work."""
        moves: list[Moved] = []
        answers = [amend(self._store, each, now, moves) for each in amendments]
        self._store.record(moves)
        return answers

    async def depth(self, lane: Lane) -> int:
        """See Work."""
        recipients = waiting(self._store, self._clock.now()) if lane is Lane.BULK else []
        return sum(map(len, self._leasable(lane).values())) + len(recipients)

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work."""
        begun = (row.notification for row in self._store.open.values() if (row.due_at or LEASABLE) <= now)
        return Counter((each.lane, each.app) for each in begun)

    async def lag(self) -> Lags:
        """See Work."""
        open_in = Counter((row.notification.lane, row.notification.app) for row in self._store.open.values())
        oldest: dict[tuple[Lane, AppId], Instant] = {}
        for row in self._store.open.values():
            key = row.notification.lane, row.notification.app
            if row.due_at == LEASABLE:
                oldest[key] = min(row.notification.created_at, oldest.get(key, row.notification.created_at))
        return {key: AppLag(n, oldest.get(key)) for key, n in open_in.items()}

    def _leasable(self, lane: Lane) -> dict[AppId, deque[tuple[StoredRow, list[LeasedPart]]]]:
        """Find what could be leased now, by app: fresh work in accept order, released work between as it was."""
        now = self._clock.now()
        found: dict[NotificationId, tuple[int, StoredRow, list[LeasedPart]]] = {}
        for row in self._store.open.values():
            part = LeasedPart(row.notification.id)
            if row.due_at == LEASABLE and not self._store.is_held(part, now):
                found[row.notification.id] = (row.seq, row, [part])
        for part, order in self._store.ready.items():
            if not self._store.is_held(part, now):
                _, _, parts = found.setdefault(
                    part.notification_id, (order, self._store.rows[part.notification_id], [])
                )
                parts.append(part)
        queues: dict[AppId, deque[tuple[StoredRow, list[LeasedPart]]]] = {}
        for _, row, parts in sorted(found.values(), key=lambda entry: entry[0]):
            if row.notification.lane is lane:
                queues.setdefault(row.notification.app, deque()).append((row, parts))
        return queues

    def _hold(self, parts: list[LeasedPart], hold: Hold) -> None:
        for part in parts:
            taken_over = self._store.holds.get(part)
            if taken_over is not None:
                self._store.overtaken.add(taken_over.token)
            self._store.holds[part] = hold

    def _waiting(self, now: Instant) -> list[Receipt]:
        """List pending targets that nobody holds and that are not released yet, the earliest due first."""
        receipts = (receipt for row in self._store.open.values() for receipt in row.receipts.values())
        pending = (receipt for receipt in receipts if receipt.status is DeliveryStatus.PENDING)
        free = [
            receipt
            for receipt in pending
            if _part(receipt) not in self._store.ready and not self._store.is_held(_part(receipt), now)
        ]
        return sorted(free, key=lambda receipt: receipt.due_at or 0)

    def _close_intents(self, now: Instant) -> None:
        moves: list[Moved] = []
        for row in list(self._store.open.values()):
            moves += close_intents(self._store, row, now)
        self._store.record(moves)

    def _end_withdrawn(self) -> None:
        """End what was leased when it was withdrawn, and whose lease is over."""
        moves: list[Moved] = []
        for row in [row for row in self._store.open.values() if row.withdrawn is not None]:
            moves += withdraw(self._store, row, None, self._clock.now())[1]
        self._store.record(moves)


def _whose_turn(queues: Mapping[AppId, object], last: AppId | None) -> AppId:
    """Choose the app after the one that was served last, in the order of their names."""
    return min(queues, key=turn_after(last or ""))


def _item(row: StoredRow, parts: list[LeasedPart]) -> WorkItem:
    numbers = {part.n for part in parts if part.n is not None}
    if not numbers:
        return WorkItem(row.notification, None)
    receipts = [row.receipts[n] for n in sorted(row.receipts)]
    targets = tuple(_open_target(each) for each in receipts if each.n in numbers)
    return WorkItem(row.notification, targets, siblings=tuple(each for each in receipts if each.n not in numbers))


def _open_target(receipt: Receipt) -> OpenTarget:
    assert receipt.channel is not None, "a target that no channel reaches is never open"
    return OpenTarget(
        receipt.n, receipt.device_id, receipt.channel, receipt.attempt, receipt.retries, receipt.throttles
    )


def _part(receipt: Receipt) -> LeasedPart:
    return LeasedPart(receipt.notification_id, receipt.n)
