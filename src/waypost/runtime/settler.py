"""The settler: gathers outcomes for a moment, writes them together, and holds them while the store is away."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from waypost.domain.delivery import FailureClass
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Lane, Notification
from waypost.domain.progress import Stale
from waypost.domain.settlement import Change, Dead, Forget, Parked, Sent, Settlement
from waypost.ports.pressure import CALM, Pressure
from waypost.ports.work import Lease, Leases, Settled
from waypost.runtime.dispatch import Dispatch
from waypost.runtime.time_slices import slices
from waypost.telemetry import Event, Metric, Telemetry

GATHER_S = 0.025
"""How long outcomes wait for company; those of a notification that is not over yet wait twice (the design: 50 ms)."""
HOLD_RETRY_S = 0.25
HELD_AFTER_S = 5.0
"""Seconds for which a store may take to write before its outcomes count as held: most stores wait for themselves."""
_UNRECORDED = "unrecorded"
PART = 100
"""The most notifications in one operation of the store: a caller who wants to write waits for it."""
HURRIED_PART = 25
"""The same while that is a caller of what is critical."""


class Settler:
    """The writer of settlements in batches; several writes may be under way, those of one lease in order."""

    def __init__(self, work: Leases, telemetry: Telemetry, limit: int, on_parked: Callable[[str], None]) -> None:
        self._work = work
        self._telemetry = telemetry
        self._limit = limit
        self._on_parked = on_parked
        self._gathered: dict[Dispatch, bool] = {}
        """The dispatches that wait to be written; under True those that waited for more outcomes once."""
        self._due = asyncio.Event()
        self._writing = 0
        self._flushes = 0
        self._seen = (0, 0.0)
        """The flush that was last seen to be under way, and since when."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._held = False
        self._tells_each = telemetry.wants(Event.DELIVERY_SETTLED)
        self.on_written: Callable[[Collection[Lane]], None] = lambda _: None
        self.store_fault: Callable[[], str | None] = lambda: None
        """The reason why the store takes no new work, None while it does."""
        self.pressure: Callable[[], Pressure] = lambda: CALM
        """The wait of outcomes in the store."""

    @property
    def is_full(self) -> bool:
        """Whether to lease no more: too much waits to be written, or for too long, or the store is almost full."""
        if self._held or len(self._gathered) + self._writing >= self._limit:
            return True
        return self.pressure().stops_leases or self.store_fault() is not None

    @property
    def is_holding(self) -> bool:
        """Whether the store is away and outcomes are held in memory."""
        return self._held

    def add(self, dispatch: Dispatch) -> None:
        """Write the changes of *dispatch* with the next batch."""
        if not self._gathered:
            self._idle.clear()
            self._due.set()
        self._gathered.setdefault(dispatch, False)

    async def run(self) -> None:
        """Write what gathers, without end."""
        while True:
            await self._due.wait()
            await asyncio.sleep(GATHER_S)
            await self._flush()

    async def drained(self) -> None:
        """Return when nothing waits to be written."""
        await self._idle.wait()

    async def _flush(self) -> None:
        dispatches, self._gathered = self._gathered, {}
        self._flushes += 1
        self._due.clear()
        batches: dict[int, tuple[Lease, list[Settled]]] = {}
        for dispatch, has_waited in dispatches.items():
            if dispatch.waiting and not has_waited:
                self._gathered[dispatch] = True
                self._due.set()
            else:
                self._writing += 1
                batches.setdefault(dispatch.lease.token, (dispatch.lease, []))[1].append(dispatch.settled())
        most = HURRIED_PART if self.pressure().is_hurried else PART
        parts = [(lease, part) for lease, settled in batches.values() for part in slices(settled, most)]
        await asyncio.gather(*(self.write(lease, part) for lease, part in parts))
        self._writing = 0
        if not self._gathered:
            self._idle.set()
        self.on_written({lease.lane for lease, _ in batches.values()})

    async def write(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """Write one lease's settlements now, again and again while the store is away; return the stale changes."""
        while True:
            try:
                stale = await self._work.settle(lease, settled)
                break
            except Unavailable as away:
                self._hold(away.code, len(settled))
                await asyncio.sleep(HOLD_RETRY_S)
            except Exception as surprise:  # noqa: BLE001 - a bug in one settlement must not stop the others
                return await self._write_apart(lease, settled, surprise)
        if self._held:
            self._held = False
            self._telemetry.event(Event.OUTCOMES_RESUMED)
            self._telemetry.gauge(Metric.HELD_OUTCOMES, 0)
        if stale:
            self._telemetry.count(Metric.STALE, len(stale))
            self._telemetry.event(Event.SETTLE_STALE, count=len(stale))
        self._note(lease, settled, {(each.notification_id, each.n) for each in stale})
        return stale

    async def _write_apart(self, lease: Lease, settled: Sequence[Settled], surprise: Exception) -> list[Stale]:
        """Write each by itself; the one that cannot be written ends as a dead letter instead.

        Left open, it would be sent again and again, and end one worker after the other.
        """
        if len(settled) > 1:
            return [stale for one in settled for stale in await self.write(lease, [one])]
        (one,) = settled
        if all(_is_unrecorded(change) for change in one.changes):
            raise surprise
        self._telemetry.event(Event.STAGE_FAILED, stage="settle", error=type(surprise).__name__)
        changes = tuple(_unrecorded(change, surprise) for change in one.changes)
        await self.write(lease, [msgspec.structs.replace(one, changes=changes)])
        return one.refused()

    def look(self, now_s: float) -> None:
        """Look whether the store writes; outcomes that it has had for long are held, though it refused none."""
        if not self._writing or self._seen[0] != self._flushes:
            self._seen = (self._flushes, now_s)
        elif now_s - self._seen[1] >= HELD_AFTER_S:
            self._hold(self.store_fault() or ErrorCode.STORAGE_BUSY, self._writing)

    def _hold(self, code: str, count: int) -> None:
        """Report that *count* cannot be written, once; of how many that is so grows as others land meanwhile."""
        if not self._held:
            self._held = True
            self._telemetry.event(Event.OUTCOMES_HELD, code=code, count=count)
        self._telemetry.gauge(Metric.HELD_OUTCOMES, max(count, self._writing + len(self._gathered)))

    def _note(self, lease: Lease, settled: Iterable[Settled], stale: Collection[tuple[NotificationId, int]]) -> None:
        """Count what was written, remember what was parked, and say which deliveries are dead letters now."""
        counts: Counter[tuple[str, type[Settlement]]] = Counter()
        conditions: set[str] = set()
        for each in settled:
            for change in each.changes:
                if self._tells_each and (each.notification.id, change.n) not in stale:
                    self._say_settled(each.notification, change)
                kind = type(change.settlement)
                counts[each.notification.app, kind] += 1
                if kind is Sent:
                    continue
                match change.settlement:
                    case Parked(condition):
                        conditions.add(condition)
                    case Dead(letter=True) | Forget(letter=True) if (each.notification.id, change.n) not in stale:
                        self._say_dead(lease.lane, each.notification, change)
        for condition in conditions:
            self._on_parked(condition)
        for (app, settlement), n in counts.items():
            word = settlement.__name__.lower()
            self._telemetry.count(Metric.SETTLED, n, app=app, lane=lease.lane, settlement=word)

    def _say_settled(self, notification: Notification, change: Change) -> None:
        """Report what became of one attempt, or what was decided instead of one."""
        code = getattr(change.settlement, "code", None)
        self._telemetry.event(
            Event.DELIVERY_SETTLED,
            notification_id=format_id(notification.id),
            n=change.n,
            attempt=change.attempt,
            settlement=type(change.settlement).__name__.lower(),
            **({} if code is None else {"code": code}),
        )

    def _say_dead(self, lane: Lane, notification: Notification, change: Change) -> None:
        code = change.settlement.code if isinstance(change.settlement, Dead | Forget) else None
        named = {"notification_id": format_id(notification.id), "n": change.n}
        self._telemetry.event(Event.DELIVERY_DEAD, app=notification.app, lane=lane, **named, code=code)


def _unrecorded(change: Change, surprise: Exception) -> Change:
    """Make the record of an outcome that cannot be written: a person has to find out whether the provider took it."""
    why = f"its outcome could not be written: {type(surprise).__name__}"
    return Change(change.n, change.attempt, Dead(_UNRECORDED, why, FailureClass.TERMINAL, letter=True), change.at)


def _is_unrecorded(change: Change) -> bool:
    return isinstance(change.settlement, Dead) and change.settlement.code == _UNRECORDED
