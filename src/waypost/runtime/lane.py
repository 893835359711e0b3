"""A lane's loop: lease, route, deliver, settle, as long as there is work and room."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
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
from waypost.pipeline.settle import change_of, sent
from waypost.ports.work import Lease, Settled, WorkItem
from waypost.runtime.attempts import Attempts
from waypost.runtime.circuits import Circuit
from waypost.runtime.concurrency import Handed
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.detours import Detours
from waypost.runtime.dispatch import Dispatch
from waypost.runtime.lane_gate import LaneGate, Parts
from waypost.runtime.leasing import BATCH, Found, LeaseLoop
from waypost.runtime.spans import LaneSpans, Routes
from waypost.telemetry import Event, Metric

SLICE = 25
"""The items routed and handed over in one turn of the loop."""

ByCredential = Mapping[CredentialId, Sequence[Delivery]]
_Landing = tuple["_Batch", Dispatch, Delivery, Outcome]


class _Batch:
    """The deliveries given to one sender together: when, through which gate, and to which part of the provider."""

    __slots__ = ("credential", "gate", "handed", "part")

    def __init__(self, credential: CredentialId, gate: LaneGate, part: Circuit, handed: Handed) -> None:
        self.credential = credential
        self.gate = gate
        self.part = part
        self.handed = handed


class LaneLoop(LeaseLoop):
    """The loop that drives one lane."""

    def __init__(self, lane: Lane, context: DeliveryContext) -> None:
        super().__init__(lane, context, context.work, SLICE)
        self._gates = context.gates.of(lane)
        self._rated = {name: gate.rate for name, gate in self._gates.items() if gate.rate is not None}
        self._detours = Detours.of(context.fallbacks, self._gates, context.rules)
        self._dispatches: dict[tuple[NotificationId, int], Dispatch] = {}
        self._landings: list[_Landing] = []
        """The outcomes reported in this turn of the event loop."""
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
            planned = _by_credential(delivery for plan in plans for delivery in plan.deliveries)
            await self._ask_limits(dispatches)
            if not await self._is_ours(lease):
                return False
            going = self._take_off(dispatches, planned, now)
            self._observe_handover(items, now)
            self._count_routed(planned, len(dispatches))
            self._spans.routed(routes, plans)
            careful = [each for deliveries in going.values() for each in deliveries if needs_intent(each)]
            if careful:
                going = {name: [each for each in of if not needs_intent(each)] for name, of in going.items()}
            self._send(going, routes)
            if careful:
                self._send(_by_credential(await self._with_intents(lease, careful)), routes)
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

    def _count_routed(self, planned: ByCredential, items: int) -> None:
        self._context.gates.heed(self.lane, {name: len(deliveries) for name, deliveries in planned.items()}, items)
        for credential, deliveries in planned.items():
            self._context.telemetry.count(Metric.ROUTED, len(deliveries), app=credential.app, lane=self.lane)

    def _take_off(self, dispatches: Sequence[Dispatch], planned: ByCredential, now: Instant) -> ByCredential:
        """Note what needs no sending, put off what must wait, and give back what may go."""
        has_room = self._admit_all(planned)
        going: list[Delivery] = []
        for dispatch in dispatches:
            plan = dispatch.plan
            dispatch.changes += plan.changes
            admitted: Iterable[Delivery] = plan.deliveries
            if not has_room:
                admitted, put_off = admit(
                    plan.deliveries, self._gates, self._context.rules, now, self._context.jitter()
                )
                dispatch.changes += put_off
                dispatch.waiting -= len(put_off)
                going += admitted
            for delivery in admitted:
                self._dispatches[delivery.id, delivery.n] = dispatch
            if dispatch.is_due and (dispatch.changes or plan.verdict is not None):
                self._context.settler.add(dispatch)
        if self._dispatches:
            self._all_landed.clear()
        return planned if has_room else _by_credential(going)

    def _admit_all(self, planned: ByCredential) -> bool:
        """Let all in where each gate has room for its own; tell whether it was so."""
        rooms: dict[CredentialId, Parts] = {}
        for name, deliveries in planned.items():
            parts = self._gates[name].parts_with_room(deliveries)
            if parts is None:
                return False
            rooms[name] = parts
        for name, deliveries in planned.items():
            self._gates[name].admit_all(deliveries, rooms[name])
        return True

    async def _with_intents(self, lease: Lease, deliveries: list[Delivery]) -> list[Delivery]:
        """Put at_most_once attempts on record before they are made; what is settled or over by then is called off."""
        by_dispatch: dict[Dispatch, list[Delivery]] = {}
        for delivery in deliveries:
            by_dispatch.setdefault(self._dispatches[delivery.id, delivery.n], []).append(delivery)
        now, recorded_s = self._context.clock.now(), self._context.clock.monotonic()
        intents = [self._intents(dispatch, of_dispatch, now) for dispatch, of_dispatch in by_dispatch.items()]
        stale = {(each.notification_id, each.n) for each in await self._context.settler.write(lease, intents)}
        going: list[Delivery] = []
        for delivery in deliveries:
            if (delivery.id, delivery.n) in stale:
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

    def _send(self, going: ByCredential, routes: Routes) -> None:
        """Hand deliveries to their senders, those for one part of a provider together and in order."""
        for credential, deliveries in going.items():
            gate = self._gates[credential]
            for part, batch in gate.by_part(deliveries):
                handed = Handed(self._context.clock.now(), self._context.clock.monotonic(), len(batch))
                part.concurrency.handed(handed)
                land = partial(self._land, _Batch(credential, gate, part, handed))
                self._context.senders[credential].send(batch, self._spans.sending(routes, batch, land))

    def _land(self, batch: _Batch, delivery: Delivery, outcome: Outcome) -> None:
        """Take an outcome; senders call it on the event loop. All of one turn of it are settled in one go.

        Who reports what is not in flight, such as something twice, is told so at once: the others' outcomes count.
        """
        dispatch = self._dispatches.pop((delivery.id, delivery.n))
        if not self._landings:
            asyncio.get_running_loop().call_soon(self._settle_landings)
        self._landings.append((batch, dispatch, delivery, outcome))

    def _settle_landings(self) -> None:
        """Settle what landed, in order: what was taken where all is well in columns, everything else one by one."""
        landings, self._landings = self._landings, []
        now, now_s = self._context.clock.now(), self._context.clock.monotonic()
        first = 0
        while first < len(landings):
            batch = landings[first][0]
            end = first + 1
            if self._detours is None and batch.gate.is_calm(batch.part):
                end = max(end, _end_of_taken(landings, first))
            try:
                if end - first > 1:
                    self._settle_taken(batch, landings[first:end], now, now_s)
                else:
                    self._settle_one(*landings[first], now, now_s)
            except Exception as surprise:  # noqa: BLE001 - a bug in one outcome must not lose those behind it
                self._tell_surprise(surprise)
            first = end
        if not self._dispatches:
            self._all_landed.set()
        if self._is_starved:
            self.wake()

    def _settle_taken(self, batch: _Batch, landings: Sequence[_Landing], now: Instant, now_s: float) -> None:
        """Settle deliveries of one batch that were taken while nothing is wrong with their provider."""
        batch.gate.taken([landing[2] for landing in landings], batch.part, batch.handed, now_s)
        waits_ms: list[int] = []
        handed_at = batch.handed.at
        heard: dict[Dispatch, None] = {}
        try:
            for _, dispatch, delivery, outcome in landings:
                assert isinstance(outcome, Taken)
                notification = dispatch.plan.item.notification
                waits_ms.append(now - (notification.scheduled_at or notification.created_at))
                dispatch.changes.append(sent(delivery, outcome, now, handed_at))
                dispatch.taken += 1
                dispatch.waiting -= 1
                heard[dispatch] = None
        finally:
            for dispatch in heard:
                self._heard(dispatch)
        self._attempts.taken(batch.credential, waits_ms)
        self._has_answered(batch, len(landings), now_s)

    def _settle_one(
        self, batch: _Batch, dispatch: Dispatch, delivery: Delivery, outcome: Outcome, now: Instant, now_s: float
    ) -> None:
        context, handed = self._context, batch.handed
        rest = batch.gate.done(delivery, outcome, handed, now_s)
        detour = None if self._detours is None else self._detours.after(delivery, outcome, rest)
        rules, chance = context.rules[delivery.credential.app], context.jitter()
        notification = dispatch.plan.item.notification
        self._attempts.add(batch.credential, outcome, now - (notification.scheduled_at or notification.created_at))
        dispatch.taken += isinstance(outcome, Taken)
        dispatch.changes.append(change_of(delivery, outcome, rules, now, chance, handed.at, rest, detour))
        dispatch.waiting -= 1
        self._heard(dispatch)
        self._has_answered(batch, 1, now_s)

    def _heard(self, dispatch: Dispatch) -> None:
        """Let the store be told of an outcome, with others, and report a round that is over; never raises."""
        try:
            if dispatch.is_due:
                self._context.settler.add(dispatch)
            if dispatch.waiting == 0 and self._tells_rounds:
                self._say(dispatch)
        except Exception as surprise:  # noqa: BLE001 - a bug with one notification must not lose the others
            self._tell_surprise(surprise)

    def _tell_surprise(self, surprise: Exception) -> None:
        self._context.telemetry.event(Event.STAGE_FAILED, stage="land", error=type(surprise).__name__)

    def _has_answered(self, batch: _Batch, n: int, now_s: float) -> None:
        """Note *n* answers to a batch; the last one says how long its provider took."""
        handed = batch.handed
        handed.left -= n
        if handed.left == 0:
            slot = batch.credential.slot
            self._context.telemetry.observe(Metric.PROVIDER_SECONDS, now_s - handed.at_s, provider=slot)

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
        dispatch = self._dispatches.pop((delivery.id, delivery.n))
        if not self._dispatches and not self._landings:
            self._all_landed.set()
        return dispatch


def _by_credential(deliveries: Iterable[Delivery]) -> dict[CredentialId, list[Delivery]]:
    grouped: dict[CredentialId, list[Delivery]] = {}
    for delivery in deliveries:
        grouped.setdefault(delivery.credential, []).append(delivery)
    return grouped


def _end_of_taken(landings: Sequence[_Landing], first: int) -> int:
    """Return where the run of what was taken of one batch ends that begins at *first*."""
    batch = landings[first][0]
    end = first
    for end in range(first, len(landings)):
        of, _, _, outcome = landings[end]
        if of is not batch or not isinstance(outcome, Taken):
            return end
    return len(landings)
