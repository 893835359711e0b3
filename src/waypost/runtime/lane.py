"""A lane's loop: lease, route, deliver, settle, as long as there is work and room."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, is_expired
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Lane
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.settlement import Change, Expired, Unstarted
from waypost.domain.time import SECOND_MS, Instant
from waypost.pipeline.deliver import admit, intent_for, intent_lasts_ms, needs_intent
from waypost.pipeline.route import Plan
from waypost.pipeline.settle import change_of
from waypost.ports.work import Lease, Settled, WorkItem
from waypost.runtime.attempts import Attempts
from waypost.runtime.concurrency import Concurrency, Handed
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.detours import Detours
from waypost.runtime.dispatch import Dispatch
from waypost.runtime.leasing import BATCH, Found, LeaseLoop
from waypost.runtime.spans import LaneSpans, Routes
from waypost.telemetry import Event, Metric

SLICE = 10
"""The items routed and handed over in one turn of the loop."""


class LaneLoop(LeaseLoop):
    """The loop that drives one lane."""

    def __init__(self, lane: Lane, context: DeliveryContext) -> None:
        super().__init__(lane, context, context.work, SLICE)
        self._gates = context.gates.of(lane)
        self._rated = {name: gate.rate for name, gate in self._gates.items() if gate.rate is not None}
        self._detours = Detours.of(context.fallbacks, self._gates, context.rules)
        self._dispatches: dict[tuple[NotificationId, int], Dispatch] = {}
        self._attempts = Attempts(lane, context.telemetry)
        self._spans = LaneSpans(lane, context.tracing)
        self._tells_rounds = context.telemetry.wants(Event.NOTIFICATION_PROCESSED)
        self._all_landed = asyncio.Event()
        self._all_landed.set()

    async def landed(self) -> None:
        """Return when no delivery is in flight."""
        await self._all_landed.wait()

    def _room(self) -> int:
        """Return how many items may be leased now."""
        if self._context.settler.is_full:
            return 0
        now_s = self._context.clock.monotonic()
        return min(BATCH, self._context.gates.room(self.lane, now_s, now_s - self._leased_s))

    def publish(self) -> None:
        """Count what was attempted since the last time."""
        self._attempts.publish()

    async def _start(self, lease: Lease, items: Sequence[WorkItem], found: Found) -> bool:
        """Route *items* and hand what may go to the senders; False where they were another's by then: nothing goes."""
        with self._context.poison.noting(self.lane, items):
            now = self._context.clock.now()
            started_s = self._context.clock.monotonic()
            routes = self._spans.routing(items)
            plans: Sequence[Plan] = self._plans(items, found, now)
            if self._detours is not None:
                plans = self._detours.of_plans(plans, now)
            if self._context.claims is not None:
                plans = await self._context.claims(plans, found)
            dispatches = [Dispatch(lease, each, started_s) for each in plans]
            await self._ask_limits(dispatches)
            if not await self._is_ours(lease):
                return False
            going: list[Delivery] = []
            for dispatch in dispatches:
                going += self._take_off(dispatch, now)
            self._observe_handover(items, now)
            self._count_routed(dispatches)
            self._spans.routed(routes, plans)
            self._send([delivery for delivery in going if not needs_intent(delivery)], routes)
            careful = [delivery for delivery in going if needs_intent(delivery)]
            if careful:
                self._send(await self._with_intents(lease, careful), routes)
        return True

    async def _ask_limits(self, dispatches: Sequence[Dispatch]) -> None:
        """Ask the limits which deliveries are too many for their provider or device."""
        asked: dict[CredentialId, list[tuple[Delivery, bool]]] = {}
        for dispatch in dispatches if self._rated else ():
            is_new = dispatch.plan.item.open_targets is None
            for delivery in dispatch.plan.deliveries:
                if delivery.credential in self._rated:
                    asked.setdefault(delivery.credential, []).append((delivery, is_new))
        for credential, deliveries in asked.items():
            await self._gates[credential].ask(self._rated[credential], deliveries)

    def _count_routed(self, dispatches: Sequence[Dispatch]) -> None:
        every = (delivery for dispatch in dispatches for delivery in dispatch.plan.deliveries)
        routed = Counter((delivery.credential.app, delivery.credential) for delivery in every)
        self._context.gates.heed(self.lane, {credential: n for (_, credential), n in routed.items()}, len(dispatches))
        for (app, _), n in routed.items():
            self._context.telemetry.count(Metric.ROUTED, n, app=app, lane=self.lane)

    def _take_off(self, dispatch: Dispatch, now: Instant) -> list[Delivery]:
        """Note what needs no sending, put off what must wait, and give back what may go."""
        going, put_off = admit(dispatch.plan.deliveries, self._gates, self._context.rules, now, self._context.jitter())
        dispatch.changes += dispatch.plan.changes
        dispatch.changes += put_off
        dispatch.waiting -= len(put_off)
        for delivery in going:
            self._dispatches[_key(delivery)] = dispatch
        if going:
            self._all_landed.clear()
        if dispatch.is_due and (dispatch.changes or dispatch.plan.verdict is not None):
            self._context.settler.add(dispatch)
        return going

    async def _with_intents(self, lease: Lease, deliveries: list[Delivery]) -> list[Delivery]:
        """Put at_most_once attempts on record before they are made; what is settled or over by then is called off."""
        by_dispatch: dict[Dispatch, list[Delivery]] = {}
        for delivery in deliveries:
            by_dispatch.setdefault(self._dispatches[_key(delivery)], []).append(delivery)
        now, recorded_s = self._context.clock.now(), self._context.clock.monotonic()
        intents = [self._intents(dispatch, of_dispatch, now) for dispatch, of_dispatch in by_dispatch.items()]
        stale = {(each.notification_id, each.n) for each in await self._context.settler.write(lease, intents)}
        going: list[Delivery] = []
        for delivery in deliveries:
            if _key(delivery) in stale:
                self._call_off(delivery)
            elif (late := self._too_late(delivery, recorded_s)) is not None:
                dispatch = self._call_off(delivery)
                dispatch.changes.append(late)
                self._context.settler.add(dispatch)
            else:
                going.append(delivery)
        return going

    def _too_late(self, delivery: Delivery, recorded_s: float) -> Change | None:
        """Return what becomes of an attempt, on record since *recorded_s*, for which it is too late by now.

        Past its intent's time it counts as unknown, as it would if this process had died: it is not made then. That
        is measured by the clock that never goes back: a step of the wall clock makes nothing late.
        """
        now = self._context.clock.now()
        if is_expired(delivery.message, delivery.attempt, now):
            return Change(delivery.n, delivery.attempt, Expired(), now)
        if (self._context.clock.monotonic() - recorded_s) * SECOND_MS >= intent_lasts_ms(self._timeout_ms(delivery)):
            return Change(delivery.n, delivery.attempt, Unstarted(), now)
        return None

    def _timeout_ms(self, delivery: Delivery) -> int:
        return self._context.senders[delivery.credential].capabilities.request_timeout_ms

    def _intents(self, dispatch: Dispatch, deliveries: Iterable[Delivery], now: Instant) -> Settled:
        changes = tuple(intent_for(each, self._timeout_ms(each), now) for each in deliveries)
        return Settled(dispatch.plan.item.notification, changes, dispatch.plan.targets)

    def _send(self, deliveries: Sequence[Delivery], routes: Routes) -> None:
        """Hand deliveries to their senders, those for one part of a provider together and in order."""
        by_part: dict[tuple[CredentialId, Concurrency], list[Delivery]] = {}
        for delivery in deliveries:
            credential = delivery.credential
            by_part.setdefault((credential, self._gates[credential].part_of(delivery).concurrency), []).append(delivery)
        for (credential, concurrency), batch in by_part.items():
            handed = Handed(self._context.clock.now(), self._context.clock.monotonic(), len(batch))
            concurrency.handed(handed)
            report = self._spans.sending(routes, batch, partial(self._land, handed))
            self._context.senders[credential].send(batch, report)

    def _land(self, handed: Handed, delivery: Delivery, outcome: Outcome) -> None:
        """Settle one outcome; senders call it on the event loop."""
        context = self._context
        dispatch = self._take_out(delivery)
        now_s = context.clock.monotonic()
        handed.left -= 1
        rest = self._gates[delivery.credential].done(delivery, outcome, handed, now_s)
        rules, now, chance = context.rules[delivery.credential.app], context.clock.now(), context.jitter()
        detour = None if self._detours is None else self._detours.after(delivery, outcome, rest)
        dispatch.changes.append(change_of(delivery, outcome, rules, now, chance, handed.at, rest, detour))
        notification = dispatch.plan.item.notification
        since = notification.scheduled_at or notification.created_at
        self._attempts.add(delivery.credential, outcome, now - since)
        dispatch.waiting -= 1
        dispatch.taken += isinstance(outcome, Taken)
        if dispatch.is_due:
            context.settler.add(dispatch)
        if handed.left == 0:
            context.telemetry.observe(Metric.PROVIDER_SECONDS, now_s - handed.at_s, provider=delivery.credential.slot)
        if dispatch.waiting == 0 and self._tells_rounds:
            self._say(dispatch)
        if self._is_starved:
            self.wake()

    def _say(self, dispatch: Dispatch) -> None:
        """Report a round of a notification."""
        notification, tried = dispatch.plan.item.notification, len(dispatch.plan.deliveries)
        self._context.telemetry.event(
            Event.NOTIFICATION_PROCESSED,
            notification_id=format_id(notification.id),
            user_id=notification.user_id,
            tokens_count=tried,
            success_count=dispatch.taken,
            failure_count=tried - dispatch.taken,
            duration_ms=round((self._context.clock.monotonic() - dispatch.started_s) * 1000),
        )

    def _call_off(self, delivery: Delivery) -> Dispatch:
        """Give the delivery's place back untried."""
        self._gates[delivery.credential].forfeit(delivery)
        return self._take_out(delivery)

    def _take_out(self, delivery: Delivery) -> Dispatch:
        dispatch = self._dispatches.pop(_key(delivery))
        if not self._dispatches:
            self._all_landed.set()
        return dispatch


def _key(delivery: Delivery) -> tuple[NotificationId, int]:
    return delivery.id, delivery.n
