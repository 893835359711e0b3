"""A loop over one lane: lease a batch, begin it part by part, as long as there is work and room."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Lane
from waypost.domain.recipient import Recipient
from waypost.domain.time import Instant, later
from waypost.pipeline.route import Plan, plan, poisoned
from waypost.ports.work import Lease, Leases, Settled, WorkItem
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.time_slices import slices
from waypost.telemetry import Event, Metric

BATCH = 200
"""The most items leased at once."""
LEASE_MS = 60_000
EXTEND_S = 0.5
"""Seconds for which a lease counts as ours without asking."""
STORE_AWAY_S = 0.5


Found = Mapping[NotificationId, Recipient]
"""The recipient of each item."""


class LeaseLoop(ABC):
    """The loop of leases of one lane; ``wake`` it when work may have come or room may have been made."""

    def __init__(self, lane: Lane, context: DeliveryContext, work: Leases, slice_: int) -> None:
        """Create the loop; *slice_* items are begun in one turn of the event loop, other lanes run between turns."""
        self.lane = lane
        self.is_idle = False
        """Whether it leased all that it could, and waits."""
        self._context = context
        self._work = work
        self._slice = slice_
        self._leased_s = 0.0
        self._ours_s = 0.0
        self._wake = asyncio.Event()
        self._is_starved = False
        """Whether there was no room at the last look; the next landing makes some."""
        self.is_elsewhere: Callable[[], bool] = lambda: False
        """Tells whether another process carries this lane."""
        self._stopping = False

    @abstractmethod
    def _room(self) -> int:
        """Return how many items may be leased now."""

    @abstractmethod
    async def _start(self, lease: Lease, items: Sequence[WorkItem], found: Found) -> bool:
        """Begin with *items*; False where the lease was lost, and Unavailable: then nothing of them was begun."""

    @abstractmethod
    async def landed(self) -> None:
        """Return when nothing is in flight."""

    def wake(self) -> None:
        """Wake the loop: there may be something to do."""
        self.is_idle = False
        self._wake.set()

    def look_again(self) -> None:
        """Wake it if it had no room and has some now: a breaker lets a probe through, or the store is back."""
        if self._is_starved and self._room() > 0:
            self.wake()

    def stop(self) -> None:
        """Lease nothing more; what is in flight goes on."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Work until stopped."""
        while not self._stopping:
            self._wake.clear()
            try:
                while await self._turn():
                    pass
            except Unavailable:
                await asyncio.sleep(STORE_AWAY_S)
                continue
            if not self._stopping:
                self.is_idle = not self._wake.is_set()
                await self._wake.wait()

    async def _turn(self) -> bool:
        """Lease and start one batch; False when there is nothing to do or no room to do it."""
        room = self._room()
        self._is_starved = room <= 0
        if self._stopping or self._is_starved or self.is_elsewhere():
            return False
        self._ours_s = self._context.clock.monotonic()
        lease = await self._work.lease(self.lane, room, self._until())
        if not lease.items:
            return False
        self._leased_s = self._context.clock.monotonic()
        self._context.telemetry.count(Metric.LEASED, len(lease.items), lane=self.lane)
        groups = [part for group in self._context.poison.split(lease.items) for part in slices(group, self._slice)]
        try:
            found = await self._recipients(lease.items)
            while groups and await self._is_ours(lease) and await self._start(lease, groups[0], found):
                del groups[0]
                await asyncio.sleep(0)
        except Unavailable:
            await self._give_back(lease, groups)
            raise
        if groups:
            await self._give_back(lease, groups)
        return True

    async def _give_back(self, lease: Lease, groups: Iterable[Sequence[WorkItem]]) -> None:
        back = [Settled(item.notification, given_back=True) for items in groups for item in items]
        await self._work.settle(lease, back)

    async def _is_ours(self, lease: Lease) -> bool:
        """Tell whether the lease still holds; asked now and then, so also after a freeze before anything goes out.

        A freeze while it asks may outlast the time that it asks for.
        """
        now_s = self._context.clock.monotonic()
        if now_s - self._ours_s < EXTEND_S:
            return True
        self._ours_s = now_s
        until = self._until()
        return await self._work.extend(lease, until) and self._context.clock.now() < until

    def _plans(self, items: Sequence[WorkItem], found: Found, now: Instant) -> list[Plan]:
        """Decide about every item; those that killed their worker too often are not touched again."""
        context = self._context
        poison = [item for item in items if context.poison.is_poison(item)]
        healthy = [item for item in items if item not in poison] if poison else items
        for item in poison:
            named = {"notification_id": format_id(item.notification.id), "app": item.notification.app}
            context.telemetry.event(Event.NOTIFICATION_POISON, **named, code="poison")
        plans = [plan(item, found[item.notification.id], context.routing, now) for item in healthy]
        return [poisoned(item, now) for item in poison] + plans

    async def _recipients(self, items: Sequence[WorkItem]) -> Found:
        """Return each item's recipient, with the devices that were read with it or as they are now."""
        asked = [(each.notification.app, each.notification.user_id) for each in items if each.devices is None]
        read = iter(await self._context.devices.for_users(asked) if asked else ())
        devices = [next(read) if each.devices is None else each.devices for each in items]
        if self._context.facts is None:
            return {each.notification.id: Recipient(of) for each, of in zip(items, devices, strict=True)}
        facts = await self._context.facts([each.notification for each in items])
        return {items[n].notification.id: Recipient(devices[n], facts[n]) for n in range(len(items))}

    def _until(self) -> Instant:
        return later(self._context.clock.now(), LEASE_MS)

    def _observe_handover(self, items: Sequence[WorkItem], now: Instant) -> None:
        """Record the longest wait of the batch's fresh items."""
        fresh = (each.notification for each in items if each.open_targets is None)
        waits = [now - (each.scheduled_at or each.created_at) for each in fresh]
        if waits:
            self._context.telemetry.observe(Metric.HANDOVER_SECONDS, max(0, *waits) / 1000, lane=self.lane)
