"""A lane's loop: lease, route, deliver, settle, as long as there is work and room."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, is_expired
from waypost.domain.ids import AppId, NotificationId, format_id
from waypost.domain.notification import Lane
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.settlement import Change, Expired
from waypost.domain.time import Instant
from waypost.pipeline.deliver import admit, intent_for, needs_intent
from waypost.pipeline.settle import change_of
from waypost.ports.work import Lease, Settled, WorkItem
from waypost.runtime.concurrency import Concurrency, Handed
from waypost.runtime.crew import Crew
from waypost.runtime.flight import Flight
from waypost.runtime.leasing import BATCH, Found, LeaseLoop
from waypost.telemetry import Event, Metric

SLICE = 10
"""Items routed and handed over in one turn of the loop."""


class LaneLoop(LeaseLoop):
    """Drives one lane."""

    def __init__(self, lane: Lane, crew: Crew) -> None:
        super().__init__(lane, crew, crew.work, SLICE)
        self._gates = crew.gates.of(lane)
        self._rated = {name: gate.rate for name, gate in self._gates.items() if gate.rate is not None}
        self._flights: dict[tuple[NotificationId, int], Flight] = {}
        self._attempts: Counter[tuple[AppId, Channel, type[Outcome]]] = Counter()
        self._tells_rounds = crew.telemetry.wants(Event.NOTIFICATION_PROCESSED)
        self._all_landed = asyncio.Event()
        self._all_landed.set()

    async def landed(self) -> None:
        """Return when no delivery is in flight."""
        await self._all_landed.wait()

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

    async def _start(self, lease: Lease, items: Sequence[WorkItem], found: Found) -> None:
        """Route *items* and hand what may go to the senders."""
        with self._crew.poison.noting(self.lane, items):
            now = self._crew.clock.now()
            started_s = self._crew.clock.monotonic()
            flights = [Flight(lease, each, started_s) for each in self._plans(items, found, now)]
            await self._ask_limits(flights)
            going: list[Delivery] = []
            for flight in flights:
                going += self._take_off(flight, now)
            self._observe_handover(items, now)
            self._count_routed(flights)
            self._send([delivery for delivery in going if not needs_intent(delivery)])
            careful = [delivery for delivery in going if needs_intent(delivery)]
            if careful:
                self._send(await self._with_intents(lease, careful))

    async def _ask_limits(self, flights: Sequence[Flight]) -> None:
        """Find out what is too much for its provider or its device."""
        asked: dict[CredentialId, list[tuple[Delivery, bool]]] = {}
        for flight in flights if self._rated else ():
            is_new = flight.plan.item.open_targets is None
            for delivery in flight.plan.deliveries:
                if delivery.credential in self._rated:
                    asked.setdefault(delivery.credential, []).append((delivery, is_new))
        for credential, deliveries in asked.items():
            await self._gates[credential].ask(self._rated[credential], deliveries)

    def _count_routed(self, flights: Sequence[Flight]) -> None:
        every = (delivery for flight in flights for delivery in flight.plan.deliveries)
        routed = Counter((delivery.credential.app, delivery.credential) for delivery in every)
        self._crew.gates.heed(self.lane, {credential: n for (_, credential), n in routed.items()}, len(flights))
        for (app, _), n in routed.items():
            self._crew.telemetry.count(Metric.ROUTED, n, app=app, lane=self.lane)

    def _take_off(self, flight: Flight, now: Instant) -> list[Delivery]:
        """Note what needs no sending, put off what must wait, and give back what may go."""
        going, put_off = admit(flight.plan.deliveries, self._gates, self._crew.rules, now, self._crew.jitter())
        flight.changes += flight.plan.changes
        flight.changes += put_off
        flight.waiting -= len(put_off)
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
            elif is_expired(delivery.message, delivery.attempt, self._crew.clock.now()):
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
        """Hand deliveries to their senders, those for one part of a provider together and in order."""
        by_part: dict[tuple[CredentialId, Concurrency], list[Delivery]] = {}
        for delivery in deliveries:
            credential = delivery.credential
            by_part.setdefault((credential, self._gates[credential].part_of(delivery).concurrency), []).append(delivery)
        for (credential, concurrency), batch in by_part.items():
            handed = Handed(self._crew.clock.now(), self._crew.clock.monotonic(), len(batch))
            concurrency.handed(handed)
            self._crew.senders[credential].send(batch, partial(self._land, handed))

    def _land(self, handed: Handed, delivery: Delivery, outcome: Outcome) -> None:
        """Settle one outcome; senders call it on the event loop."""
        crew = self._crew
        flight = self._take_out(delivery)
        now_s = crew.clock.monotonic()
        handed.left -= 1
        rest = self._gates[delivery.credential].done(delivery, outcome, handed, now_s)
        app, now, chance = delivery.credential.app, crew.clock.now(), crew.jitter()
        flight.changes.append(change_of(delivery, outcome, crew.rules[app], now, chance, handed.at, rest))
        self._attempts[app, delivery.channel, type(outcome)] += 1
        flight.waiting -= 1
        flight.taken += isinstance(outcome, Taken)
        if flight.is_due:
            crew.settler.add(flight)
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


def _key(delivery: Delivery) -> tuple[NotificationId, int]:
    return delivery.id, delivery.n
