"""Simulating: notifications go through routing, rules and claims as in a lane, on a clock of their own, unsent.

What would be sent counts as taken, and as confirmed: a fallback is needed where all that it waits for is held back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Final

from msgspec import Struct

from waypost.domain.address import FEED
from waypost.domain.delivery import PUT_OFF, OpenTarget
from waypost.domain.device import Device
from waypost.domain.ids import DeviceId, NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.recipient import FactsReader, Recipient
from waypost.domain.routing import RoutingTable, Ruling
from waypost.domain.settlement import Change, Dead, Expired, Parked, Settlement, Suppressed
from waypost.domain.simulation import Ending, Fate, Happened, fate_of
from waypost.domain.status import NotificationStatus
from waypost.domain.time import SECOND_MS, Instant, later
from waypost.domain.waits import WaitsFor
from waypost.pipeline.route import Plan, plan
from waypost.ports.work import WorkItem
from waypost.runtime.delivery_context import Claims

MERGED: Final = "merged"
DEGRADED: Final = "degraded"
_HELD_BACK: Final = {MERGED: Ending.MERGED, DEGRADED: Ending.DEGRADED}
"""The first word of the reason of what is found elsewhere."""


class SimulatedClock:
    """A clock that stands where a simulation is."""

    def __init__(self) -> None:
        self.at = Instant(0)

    def now(self) -> Instant:
        """See Clock."""
        return self.at

    def monotonic(self) -> float:
        """See Clock."""
        return self.at / SECOND_MS


class World(Struct, frozen=True):
    """The parts that decide under one policy: the same as a worker's, on stores that keep nothing."""

    routing: RoutingTable
    facts: FactsReader | None
    claims: Claims | None
    clock: SimulatedClock
    arrivals: Callable[[], Sequence[Notification]]
    """Takes what was accepted since the last time: digests, and copies for the feed."""


class Decided(Struct, frozen=True):
    """One look at a notification: the verdicts of the rules, and what was held back when it was about to be sent."""

    at: Instant
    rulings: Sequence[Ruling]
    changes: Sequence[tuple[DeviceId, Settlement]]
    sent: Sequence[DeviceId]


class Course:
    """The course of one notification."""

    def __init__(self, notification: Notification, recipient: Recipient | None = None) -> None:
        self.notification = notification
        self.recipient = recipient
        """The recipient; None until it is due, of what came into being on the way."""
        self.due = notification.scheduled_at or notification.created_at
        self.targets: dict[int, OpenTarget] = {}
        self.waiting: dict[int, WaitsFor] = {}
        self.happened: dict[int, Happened] = {}
        self.put_off_by: str | None = None
        self.verdict: NotificationStatus | None = None

    def fate(self) -> Fate:
        """Return what became of it."""
        if self.verdict is not None:
            return Fate(Ending.EXPIRED if self.verdict is NotificationStatus.EXPIRED else Ending.NO_TARGETS)
        return fate_of(self.due, list(self.happened.values()), self.put_off_by)

    def take(self, made: Plan, now: Instant) -> dict[Instant, list[OpenTarget]]:
        """Note what follows from one plan; return what is looked at again, by when."""
        for target in made.targets or ():
            if target.channel is not None:
                self.targets[target.n] = OpenTarget(target.n, target.device_id, target.channel, 0)
            if isinstance(target.waits, WaitsFor):
                self.waiting[target.n] = target.waits
        self.verdict = made.verdict
        for delivery in made.deliveries:
            self.happened[delivery.n] = Happened(delivery.n, now, self.targets[delivery.n].device_id == FEED)
        again: dict[Instant, list[OpenTarget]] = {}
        for change in made.changes:
            if isinstance(change.settlement, Parked):
                self.put_off_by = self.put_off_by or change.settlement.condition.removeprefix(PUT_OFF)
                until = max(change.settlement.until, later(now, SECOND_MS))  # as soon as anybody would look again
                again.setdefault(until, []).append(self.targets[change.n])
            else:
                self.happened[change.n] = _ended(change, now)
        if needed := self._needed():
            again.setdefault(now, []).extend(needed)
        return again

    def _needed(self) -> list[OpenTarget]:
        """Take out the fallbacks whose siblings have all ended: needed where none of them was sent."""
        needed: list[OpenTarget] = []
        for n, waits in list(self.waiting.items()):
            ends = [self.happened[each].ending for each in waits.siblings if each in self.happened]
            if Ending.SENT in ends:
                del self.waiting[n]
            elif len(ends) == len(waits.siblings):
                del self.waiting[n]
                needed.append(self.targets[n])
        return needed


def _ended(change: Change, now: Instant) -> Happened:
    match change.settlement:
        case Suppressed(reason):
            word = reason.partition(" ")[0]
            ending = _HELD_BACK.get(word, Ending.SUPPRESSED)
            return Happened(change.n, now, ending=ending, reason=word if ending in _HELD_BACK.values() else reason)
        case Expired():
            return Happened(change.n, now, ending=Ending.EXPIRED)
        case Dead(code):
            return Happened(change.n, now, ending=Ending.FAILED, reason=code)
        case other:
            raise AssertionError(f"routing decides no {type(other).__name__}")


class Simulation:
    """A simulation of some users' notifications under one policy."""

    def __init__(self, world: World, devices: Mapping[UserId, Sequence[Device]]) -> None:
        """Create it; *devices* are those of its users."""
        self._world = world
        self._devices = devices
        self._due: list[tuple[Instant, int, Course, tuple[OpenTarget, ...] | None]] = []
        self._places = count()
        self.watched: NotificationId | None = None
        """The notification whose decisions are noted."""
        self.decided: list[Decided] = []
        self.made: list[Course] = []
        """What came into being on the way."""

    async def run(self, told: Sequence[Notification]) -> list[Fate]:
        """Let *told* happen; return what becomes of each, in order."""
        facts = await self._facts(told)
        courses = [
            Course(each, Recipient(self._devices.get(each.user_id, ()), known))
            for each, known in zip(told, facts, strict=True)
        ]
        for each in courses:
            self._push(each.due, each, None)
        while self._due:
            at, _, course, again = heapq.heappop(self._due)
            self._world.clock.at = at
            await self._decide(course, again, at)
            for arrival in self._world.arrivals():
                made = Course(arrival)
                self.made.append(made)
                self._push(max(made.due, at), made, None)
        return [each.fate() for each in courses]

    def _push(self, at: Instant, course: Course, again: tuple[OpenTarget, ...] | None) -> None:
        heapq.heappush(self._due, (at, next(self._places), course, again))

    async def _facts(self, told: Sequence[Notification]) -> Sequence[Mapping[str, object]]:
        return [{}] * len(told) if self._world.facts is None else await self._world.facts(told)

    async def _decide(self, course: Course, again: tuple[OpenTarget, ...] | None, now: Instant) -> None:
        if course.recipient is None:
            (known,) = await self._facts([course.notification])
            course.recipient = Recipient(self._devices.get(course.notification.user_id, ()), known)
        item = WorkItem(course.notification, again)
        made = plan(item, course.recipient, self._world.routing, now)
        if self._world.claims is not None and made.deliveries:
            (made,) = await self._world.claims([made], {course.notification.id: course.recipient})
        for until, targets in course.take(made, now).items():
            self._push(until, course, tuple(targets))
        if course.notification.id == self.watched:
            self.decided.append(self._noted(course, course.recipient, again, made, now))

    def _noted(
        self, course: Course, recipient: Recipient, again: tuple[OpenTarget, ...] | None, made: Plan, now: Instant
    ) -> Decided:
        names = [each.device_id for each in again or ()]
        routed = self._world.routing.route(course.notification, recipient, now, names)
        named = {n: each.device_id for n, each in course.targets.items()}
        named |= {target.n: target.device_id for target in made.targets or ()}
        changes = [(named[each.n], each.settlement) for each in made.changes]
        return Decided(now, routed.rulings, changes, [named[each.n] for each in made.deliveries])
