"""A lane's loop: lease, route, deliver, settle, as long as there is work and room."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from waypost.domain.delivery import Delivery, is_expired
from waypost.domain.device import Device
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, CredentialId, NotificationId, format_id
from waypost.domain.notification import Channel, Lane
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.retry import RetryRules
from waypost.domain.settlement import Change, Expired
from waypost.domain.time import Instant, later
from waypost.pipeline.deliver import admit, intent_for, needs_intent
from waypost.pipeline.route import Channels, Credentials, Plan, plan, poisoned
from waypost.pipeline.settle import change_of
from waypost.ports.clock import Clock, Jitter
from waypost.ports.devices import Devices
from waypost.ports.sender import Sender
from waypost.ports.work import Lease, Settled, Work, WorkItem
from waypost.runtime.flight import Flight
from waypost.runtime.gates import Gates
from waypost.runtime.poison import PoisonWatch
from waypost.runtime.settler import Settler
from waypost.runtime.slices import slices
from waypost.telemetry import Event, Metric, Telemetry

BATCH = 500
"""Items leased at once."""
SLICE = 10
"""Items routed and handed over in one turn of the loop: the other lanes have their turns between."""
LEASE_MS = 60_000
EXTEND_S = 0.5
"""How long a lease counts as ours without asking."""
STORE_AWAY_S = 0.5


_Found = Mapping[NotificationId, Sequence[Device]]
"""The devices of each item's user."""


class Crew(Struct, frozen=True):
    """What every lane of a worker works with."""

    work: Work
    devices: Devices
    senders: Mapping[CredentialId, Sender]
    channels: Channels
    credentials: Mapping[AppId, Credentials]
    rules: Mapping[AppId, RetryRules]
    gates: Gates
    settler: Settler
    poison: PoisonWatch
    clock: Clock
    jitter: Jitter
    telemetry: Telemetry


class LaneLoop:
    """Drives one lane; ``wake`` it when work may have come or room may have been made."""

    def __init__(self, lane: Lane, crew: Crew) -> None:
        self.lane = lane
        self.is_idle = False
        """It leased all that it could, and waits."""
        self._crew = crew
        self._gates = crew.gates.of(lane)
        self._flights: dict[tuple[NotificationId, int], Flight] = {}
        self._attempts: Counter[tuple[AppId, Channel, type[Outcome]]] = Counter()
        self._leased_s = 0.0
        self._ours_s = 0.0
        self._tells_rounds = crew.telemetry.wants(Event.NOTIFICATION_PROCESSED)
        self._wake = asyncio.Event()
        self._all_landed = asyncio.Event()
        self._all_landed.set()
        self._is_starved = False
        """There was no room at the last look; the next landing makes some."""
        self._stopping = False

    def wake(self) -> None:
        """There may be something to do."""
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

    async def landed(self) -> None:
        """Return when no delivery is in flight."""
        await self._all_landed.wait()

    async def _turn(self) -> bool:
        """Lease and start one batch; False when there is nothing to do or no room to do it."""
        room = self._room()
        self._is_starved = room <= 0
        if self._stopping or self._is_starved:
            return False
        self._ours_s = self._crew.clock.monotonic()
        lease = await self._crew.work.lease(self.lane, room, self._until())
        if not lease.items:
            return False
        self._leased_s = self._crew.clock.monotonic()
        self._crew.telemetry.count(Metric.LEASED, len(lease.items), lane=self.lane)
        groups = [part for group in self._crew.poison.split(lease.items) for part in slices(group, SLICE)]
        try:
            found = await self._devices(lease.items)
            while groups and await self._is_ours(lease):
                with self._crew.poison.noting(self.lane, groups[0]):
                    await self._start(lease, groups[0], found)
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
        await self._crew.work.settle(lease, back)

    async def _is_ours(self, lease: Lease) -> bool:
        """Whether nobody has taken over; asked now and then, so after a freeze before anything more goes out."""
        now_s = self._crew.clock.monotonic()
        if now_s - self._ours_s < EXTEND_S:
            return True
        self._ours_s = now_s
        return await self._crew.work.extend(lease, self._until())

    def _room(self) -> int:
        """How much may be leased now."""
        if self._crew.settler.is_full:
            return 0
        now_s = self._crew.clock.monotonic()
        return min(BATCH, self._crew.gates.room(self.lane, now_s, now_s - self._leased_s))

    def publish(self) -> None:
        """Count what was attempted since the last time."""
        attempts, self._attempts = self._attempts, Counter()
        for (app, provider, outcome), n in attempts.items():
            labels = {"app": app, "lane": self.lane, "provider": provider, "outcome": outcome.__name__.lower()}
            self._crew.telemetry.count(Metric.ATTEMPTS, n, **labels)

    async def _start(self, lease: Lease, items: Sequence[WorkItem], found: _Found) -> None:
        """Route *items* and hand what may go to the senders; Unavailable where nothing of them was begun."""
        now = self._crew.clock.now()
        started_s = self._crew.clock.monotonic()
        flights = [Flight(lease, each, started_s) for each in self._plans(items, found, now)]
        going: list[Delivery] = []
        for flight in flights:
            going += self._take_off(flight, now)
        self._observe_handover(items, now)
        self._count_routed(flights)
        self._send([delivery for delivery in going if not needs_intent(delivery)])
        careful = [delivery for delivery in going if needs_intent(delivery)]
        if careful:
            self._send(await self._with_intents(lease, careful))

    def _count_routed(self, flights: Sequence[Flight]) -> None:
        every = (delivery for flight in flights for delivery in flight.plan.deliveries)
        routed = Counter((delivery.notification.app, delivery.credential) for delivery in every)
        self._crew.gates.heed(self.lane, {credential: n for (_, credential), n in routed.items()}, len(flights))
        for (app, _), n in routed.items():
            self._crew.telemetry.count(Metric.ROUTED, n, app=app, lane=self.lane)

    def _plans(self, items: Sequence[WorkItem], found: _Found, now: Instant) -> list[Plan]:
        """Decide about every item; those that killed their worker too often are not touched again."""
        crew = self._crew
        poison = [item for item in items if crew.poison.is_poison(item)]
        healthy = [item for item in items if item not in poison] if poison else items
        for item in poison:
            crew.telemetry.event(Event.NOTIFICATION_POISON, notification_id=format_id(item.notification.id))
        plans = [
            plan(
                item,
                found[item.notification.id],
                crew.channels,
                crew.credentials.get(item.notification.app, {}),
                now,
            )
            for item in healthy
        ]
        return [poisoned(item, now) for item in poison] + plans

    async def _devices(self, items: Sequence[WorkItem]) -> _Found:
        """Each item's devices, those read with it or as they are now."""
        asked = [(each.notification.app, each.notification.user_id) for each in items if each.devices is None]
        read = iter(await self._crew.devices.for_users(asked) if asked else ())
        return {each.notification.id: next(read) if each.devices is None else each.devices for each in items}

    def _take_off(self, flight: Flight, now: Instant) -> list[Delivery]:
        """Note what needs no sending, park what must wait, and give back what may go."""
        going, parked = admit(flight.plan.deliveries, self._gates, now)
        flight.changes += flight.plan.changes
        flight.changes += parked
        flight.waiting -= len(parked)
        for delivery in going:
            self._flights[_key(delivery)] = flight
        if going:
            self._all_landed.clear()
        if flight.is_due and (flight.changes or flight.plan.verdict is not None):
            self._crew.settler.add(flight)
        return going

    async def _with_intents(self, lease: Lease, deliveries: list[Delivery]) -> list[Delivery]:
        """Put at_most_once attempts on record before they are made; what is settled or over by then is called off."""
        by_flight: dict[Flight, list[Delivery]] = {}
        for delivery in deliveries:
            by_flight.setdefault(self._flights[_key(delivery)], []).append(delivery)
        now = self._crew.clock.now()
        intents = [self._intents(flight, of_flight, now) for flight, of_flight in by_flight.items()]
        stale = {(each.notification_id, each.n) for each in await self._crew.settler.write(lease, intents)}
        going: list[Delivery] = []
        for delivery in deliveries:
            if _key(delivery) in stale:
                self._call_off(delivery)
            elif is_expired(delivery.notification, delivery.attempt, self._crew.clock.now()):
                flight = self._call_off(delivery)
                flight.changes.append(Change(delivery.n, delivery.attempt, Expired(), self._crew.clock.now()))
                self._crew.settler.add(flight)
            else:
                going.append(delivery)
        return going

    def _intents(self, flight: Flight, deliveries: Iterable[Delivery], now: Instant) -> Settled:
        changes = tuple(
            intent_for(each, self._crew.senders[each.credential].capabilities.request_timeout_ms, now)
            for each in deliveries
        )
        return Settled(flight.plan.item.notification, changes, flight.plan.targets)

    def _send(self, deliveries: Sequence[Delivery]) -> None:
        """Hand deliveries to their senders, those of one credential together and in order."""
        by_credential: dict[CredentialId, list[Delivery]] = {}
        for delivery in deliveries:
            by_credential.setdefault(delivery.credential, []).append(delivery)
        for credential, batch in by_credential.items():
            handed = _Handed(self._crew.clock.now(), self._crew.clock.monotonic(), len(batch))
            self._crew.senders[credential].send(batch, partial(self._land, handed))

    def _land(self, handed: _Handed, delivery: Delivery, outcome: Outcome) -> None:
        """Settle one outcome; senders call it on the event loop."""
        crew = self._crew
        flight = self._take_out(delivery)
        now_s = crew.clock.monotonic()
        rest_s = self._gates[delivery.credential].done(delivery, outcome, now_s, now_s - handed.at_s)
        app, now, chance = delivery.notification.app, crew.clock.now(), crew.jitter()
        flight.changes.append(change_of(delivery, outcome, crew.rules[app], now, chance, handed.at, rest_s))
        self._attempts[app, delivery.channel, type(outcome)] += 1
        flight.waiting -= 1
        flight.taken += isinstance(outcome, Taken)
        if flight.is_due:
            crew.settler.add(flight)
        handed.left -= 1
        if handed.left == 0:
            crew.telemetry.observe(Metric.PROVIDER_SECONDS, now_s - handed.at_s, provider=delivery.channel)
        if flight.waiting == 0 and self._tells_rounds:
            self._say(flight)
        if self._is_starved:
            self.wake()

    def _say(self, flight: Flight) -> None:
        """Say how a round of a notification went."""
        notification, tried = flight.plan.item.notification, len(flight.plan.deliveries)
        self._crew.telemetry.event(
            Event.NOTIFICATION_PROCESSED,
            notification_id=format_id(notification.id),
            user_id=notification.user_id,
            tokens_count=tried,
            success_count=flight.taken,
            failure_count=tried - flight.taken,
            duration_ms=round((self._crew.clock.monotonic() - flight.started_s) * 1000),
        )

    def _call_off(self, delivery: Delivery) -> Flight:
        """Give the delivery's place back untried."""
        self._gates[delivery.credential].forfeit(delivery)
        return self._take_out(delivery)

    def _take_out(self, delivery: Delivery) -> Flight:
        flight = self._flights.pop(_key(delivery))
        if not self._flights:
            self._all_landed.set()
        return flight

    def _until(self) -> Instant:
        return later(self._crew.clock.now(), LEASE_MS)

    def _observe_handover(self, items: Sequence[WorkItem], now: Instant) -> None:
        """The longest wait of the batch's fresh items."""
        fresh = (each.notification for each in items if each.open_targets is None)
        waits = [now - (each.scheduled_at or each.created_at) for each in fresh]
        if waits:
            self._crew.telemetry.observe(Metric.HANDOVER_SECONDS, max(waits) / 1000, lane=self.lane)


class _Handed:
    """A batch with a sender."""

    __slots__ = ("at", "at_s", "left")

    def __init__(self, at: Instant, at_s: float, left: int) -> None:
        self.at = at
        self.at_s = at_s
        self.left = left
        """Deliveries without an outcome."""


def _key(delivery: Delivery) -> tuple[NotificationId, int]:
    return delivery.notification.id, delivery.n
