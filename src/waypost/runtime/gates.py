"""Gates: how many deliveries each lane may have in flight with each credential, behind its breakers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from waypost.domain.breaker import BreakerRules, BreakerState, Rest
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Reach, Refused, Taken, Unanswered
from waypost.domain.time import Instant
from waypost.domain.turns import turn_after
from waypost.pipeline.deliver import Pause
from waypost.ports.sender import Capabilities
from waypost.ports.work import Work
from waypost.runtime.circuits import Circuit
from waypost.runtime.concurrency import Concurrency, Handed
from waypost.runtime.rates import LANE_SHARES, Key, RateGate
from waypost.runtime.scopes import Scopes
from waypost.telemetry import Telemetry

SOON_S = 0.25
"""A full gate is waited for so long at most, and only where something of it landed as recently."""

HARDLY = 0.05
"""The deliveries of an item for a credential below which a lane hardly uses it."""

WITHOUT_SENDERS = 100
"""The number of items a lane leases where no app has a credential, to say so of each notification."""

TRICKLE = 100
"""The items a lane leases each ``SOON_S`` while every breaker is open: some of it ends without being sent."""

RATED_A_TURN = 20
"""The searches in one release for what waited for a rate, the last credential's aside; the next go on from there."""


class LaneGate:
    """The budget of one lane with one credential (fulfils pipeline.deliver.Gate)."""

    def __init__(
        self,
        lane: Lane,
        credential: CredentialId,
        circuit: Circuit,
        budget: int,
        scopes: Scopes | None,
        rate: RateGate | None,
        *,
        fails_apart: bool,
    ) -> None:
        """Create the gate; *budget* is the most that the lane may have in flight, less while answers take long."""
        self.condition = f"room:{lane}/{credential}"
        self.circuit = circuit
        self.rate = rate
        self._over: Mapping[Key, str | Pause] = {}
        """The condition or pause of each delivery that is over the limits, of those being let in."""
        self._lane = lane
        self._scopes = scopes
        self._scoped: dict[tuple[NotificationId, int], Circuit] = {}
        """The scope's circuit of each delivery in flight: which scope it hangs on may be known better when it lands."""
        self._apart = fails_apart
        self._budget = budget
        self._in_flight = 0
        self._landed_s = 0.0
        self._per_item = 1.0

    @property
    def _limit(self) -> int:
        """How many of the lane may be in flight now; parts that fail apart have their own limits beneath."""
        return self._budget if self._apart else self.circuit.concurrency.most(self._lane)

    def room(self) -> int:
        """Return how many more deliveries may go."""
        return max(0, min(self._limit - self._in_flight, self.circuit.room()))

    def room_for_items(self) -> int:
        """Return how many items may be leased so that their deliveries will probably find room here."""
        room = self.room()
        return int(room / self._per_item) or min(1, room)

    async def ask(self, rate: RateGate, deliveries: Sequence[tuple[Delivery, bool]]) -> None:
        """Ask the limits about what is let in next; with each comes whether it is new."""
        room = min(_with_slack(self._limit) - self._in_flight, self.circuit.room())
        self._over = await rate.over(self._lane, deliveries, room, self.condition)

    def heed(self, deliveries: int, items: int) -> None:
        """Learn how many deliveries come of an item: the mean over the last few batches."""
        self._per_item += (max(deliveries / items, 0.01) - self._per_item) / 8

    @property
    def is_tight(self) -> bool:
        """Whether it is about full."""
        return self.room() < max(1, self._limit // 8)

    def is_moving(self, now_s: float) -> bool:
        """Tell whether a delivery has just landed: then there will be room in a moment."""
        return now_s - self._landed_s < SOON_S

    @property
    def is_queued(self) -> bool:
        """Whether its provider is at its limit: what there is no room for waits for the provider, not for us."""
        return self.circuit.concurrency.is_queued

    @property
    def is_used(self) -> bool:
        """Whether the lane has something for it."""
        return self._per_item > HARDLY

    def part_of(self, delivery: Delivery) -> Circuit:
        """Return the circuit that admitted *delivery*: its part of the provider is slow or quick as one."""
        return self._scoped[delivery.id, delivery.n] if self._apart else self.circuit

    def _part(self, scope: Circuit | None) -> Circuit:
        return scope if self._apart and scope is not None else self.circuit

    def admit(self, delivery: Delivery) -> str | Pause | None:
        """Take a place, or say what to wait for; a batch may overshoot the limit by a quarter."""
        if self.circuit.room() <= 0:
            return self.circuit.condition
        if self._in_flight >= _with_slack(self._limit):
            return self.condition
        scope = self._scopes.of(delivery) if self._scopes is not None and self._scopes.are_watched else None
        if scope is not None and not scope.has_room(self._lane):
            return scope.condition
        if self.rate is not None and (over := self._over.get((delivery.id, delivery.n))) is not None:
            return over
        if scope is not None:
            scope.in_flight += 1
            self._scoped[delivery.id, delivery.n] = scope
        self._part(scope).concurrency.take(self._lane)
        self._in_flight += 1
        self.circuit.in_flight += 1
        return None

    def done(self, delivery: Delivery, outcome: Outcome, batch: Handed, now_s: float) -> Rest | None:
        """Give the place back and learn from the outcome; return the rest that follows where a breaker is open."""
        self._in_flight -= 1
        self._landed_s = now_s
        scope = self._scoped.pop((delivery.id, delivery.n), None) if self._scoped else None
        concurrency = self._part(scope).concurrency
        concurrency.give_back(self._lane)
        concurrency.landed(outcome, batch, now_s)
        token = delivery.address.token
        is_past = isinstance(outcome, Unanswered) and concurrency.is_past(batch)
        if scope is None:
            if self._scopes is None or not isinstance(outcome, CredentialRejected) or outcome.reach is Reach.CREDENTIAL:
                return self.circuit.done(outcome, now_s, self._budget, token, is_past=is_past)
            scope = self._scopes.of(delivery)
        match outcome:
            case Taken() | Gone() | Refused():  # good news of the credential and of its scope
                self.circuit.done(outcome, now_s, self._budget, token)
                concerned = scope
            case CredentialRejected(reach=reach):
                concerned = self.circuit if reach is Reach.CREDENTIAL else scope
                (scope if concerned is self.circuit else self.circuit).left()
            case _:
                concerned = scope if self._apart else self.circuit
                (self.circuit if self._apart else scope).left()
        return concerned.done(outcome, now_s, self._budget, token, is_past=is_past)

    def forfeit(self, delivery: Delivery) -> None:
        """Give the place back untried."""
        self._in_flight -= 1
        self.circuit.left()
        scope = self._scoped.pop((delivery.id, delivery.n), None)
        self._part(scope).concurrency.give_back(self._lane)
        if scope is not None:
            scope.left()


def _with_slack(limit: int) -> int:
    return limit + max(1, limit // 4)


class Gates:
    """The gates of a worker, one for each lane and credential."""

    def __init__(
        self,
        senders: Mapping[CredentialId, Capabilities],
        budgets: Mapping[Lane, int],
        rules: BreakerRules,
        telemetry: Telemetry,
        rates: Mapping[CredentialId, RateGate] = MappingProxyType({}),
        *,
        parks: bool = True,
    ) -> None:
        """Create the gates; *senders* are what each can do; *budgets* replace a lane's share of what they can hold.

        *rates* are of those whose provider is to get only so much in a time. Where nothing *parks*, nothing is leased
        that cannot be sent.
        """
        self._parks = parks
        self._rates = rates
        self._circuits: dict[CredentialId, Circuit] = {}
        self._scopes: dict[CredentialId, Scopes] = {}
        self._apart = {name for name, sender in senders.items() if sender.fails_apart}
        self._gates: dict[Lane, dict[CredentialId, LaneGate]] = {lane: {} for lane in LANE_SHARES}
        self._of_conditions: dict[str, list[LaneGate]] = {}
        """The gates with room for what waits under each condition."""
        self._may_have_parked: set[str] = set()
        """The conditions under which the store may hold something: some was parked here, or found there."""
        self._last_rated: CredentialId | None = None
        for credential, sender in senders.items():
            of_lanes = {
                lane: budgets.get(lane) or max(1, round(sender.max_in_flight * LANE_SHARES[lane])) for lane in Lane
            }
            new = partial(Concurrency, of_lanes, sender.late_after_s)
            self._circuits[credential] = Circuit(credential, rules, telemetry, new())
            if sender.scope_of is not None:
                self._scopes[credential] = Scopes(
                    credential, rules, telemetry, sender.scope_of, new, are_watched=sender.fails_apart
                )
            for lane, budget in of_lanes.items():
                gate = self._gates[lane][credential] = LaneGate(
                    lane,
                    credential,
                    self._circuits[credential],
                    budget,
                    self._scopes.get(credential),
                    rates.get(credential),
                    fails_apart=sender.fails_apart,
                )
                for condition in (gate.condition, gate.circuit.condition):
                    self._of_conditions.setdefault(condition, []).append(gate)

    def of(self, lane: Lane) -> Mapping[CredentialId, LaneGate]:
        """Return the gates of one lane, by credential."""
        return self._gates[lane]

    def room(self, lane: Lane, now_s: float, waited_s: float) -> int:
        """Return how many items a lane may lease now; *waited_s* is how long ago it leased last.

        As many as every credential has room for, so that nothing need be parked. One that is full is waited for where
        it is moving, but only a moment: then the lane goes on with the others, and what does not fit is parked. One
        whose provider is the slower one does not set the pace while the lane has something for others. Where every
        breaker is open it is a trickle: what is over, or for nobody, is decided without a provider; the rest is parked.
        """
        gates = self._gates[lane].values()
        if self._parks and gates and all(gate.circuit.is_shut for gate in gates):
            return TRICKLE if waited_s >= SOON_S else 0
        steady = [gate for gate in gates if gate.circuit.is_steady]
        quick = [gate for gate in steady if not gate.is_queued]
        if any(gate.is_used for gate in quick):
            steady = quick
        if waited_s < SOON_S and any(gate.is_tight and gate.is_moving(now_s) for gate in steady):
            return 0
        roomy = [gate.room_for_items() for gate in steady if not gate.is_tight]
        return min(roomy, default=max((gate.room_for_items() for gate in gates), default=WITHOUT_SENDERS))

    def heed(self, lane: Lane, deliveries: Mapping[CredentialId, int], items: int) -> None:
        """Learn what comes of the items of *lane*."""
        for credential, gate in self._gates[lane].items():
            gate.heed(deliveries.get(credential, 0), items)

    def tick(self, now_s: float, stalled_s: float = 0.0) -> None:
        """Move open breakers on and adjust limits; for *stalled_s* this process stood still since the last tick."""
        for circuit in self._circuits.values():
            circuit.tick(now_s, stalled_s)
        for scopes in self._scopes.values():
            scopes.tick(now_s, stalled_s)

    def lifted(self) -> dict[str, int]:
        """Return how many parked deliveries may come back under each condition; nothing where nothing may be parked."""
        rooms = {
            condition: max(gate.room() for gate in self._of_conditions[condition])
            for condition in self._may_have_parked
        }
        lifted = {condition: room for condition, room in rooms.items() if room > 0}
        for credential, scopes in self._scopes.items():
            room = max(self._gates[lane][credential].room() for lane in LANE_SHARES)
            lifted.update(scopes.lifted(room))
        return lifted

    async def release_rated(self, work: Work, now: Instant) -> int:
        """Let come back what waited for a rate, each lane by itself: it is known then which has nothing more.

        Each is a search of its own, so that of many credentials only some have their turn.
        """
        released, searches = 0, 0
        for credential in self._rated_in_turn():
            rate = self._rates[credential]
            for lane, n in rate.waiting.turns():
                room = min(n, self._gates[lane][credential].room())
                if room > 0:
                    came = await work.promote_due(now, room, {rate.waiting.conditions[lane]: room})
                    rate.waiting.came_back(lane, came)
                    released += came
                    searches += 1
            if searches >= RATED_A_TURN:
                self._last_rated = credential
                break
        return released

    def _rated_in_turn(self) -> list[CredentialId]:
        """List the credentials of whose rate something waits or may wait, those after the last one first."""
        waiting = [name for name, rate in self._rates.items() if rate.waiting.is_looked_for]
        later = turn_after("" if self._last_rated is None else str(self._last_rated))
        return sorted(waiting, key=lambda name: later(str(name)))

    def nothing_came(self, lifted: Mapping[str, int]) -> None:
        """Note that the store has nothing parked under these conditions."""
        self._may_have_parked.difference_update(lifted)
        for scopes in self._scopes.values():
            scopes.nothing_came(lifted)

    def parked(self, condition: str) -> None:
        """Note that something was durably parked under *condition*."""
        if condition in self._of_conditions:
            self._may_have_parked.add(condition)
        for scopes in self._scopes.values():
            scopes.parked(condition)
        for rate in self._rates.values():
            rate.waiting.parked(condition)

    def conditions(self) -> Iterator[str]:
        """List each condition that a gate lifts."""
        yield from self._of_conditions
        for scopes in self._scopes.values():
            yield from scopes.conditions
        for rate in self._rates.values():
            yield from rate.waiting.held

    def found_parked(self, conditions: Collection[str]) -> None:
        """Note that something is parked under these conditions, if not of this worker's shards."""
        self._may_have_parked |= self._of_conditions.keys() & conditions
        for scopes in self._scopes.values():
            scopes.found_parked(conditions)
        for rate in self._rates.values():
            rate.waiting.found_parked(conditions)

    def limits(self) -> dict[CredentialId, int]:
        """Return how many deliveries may be in flight per credential, but for those whose parts fail on their own."""
        return {name: circuit.concurrency.limit for name, circuit in self._circuits.items() if name not in self._apart}

    def open_circuit(self, credential: CredentialId) -> Circuit | None:
        """Return the credential's own circuit if its breaker is not closed: nothing goes to the provider but probes."""
        circuit = self._circuits[credential]
        return None if circuit.state is BreakerState.CLOSED else circuit

    def open_scopes(self, credential: CredentialId) -> list[Circuit]:
        """List the parts of a provider whose breakers are open, where it has parts."""
        scopes = self._scopes.get(credential)
        return [] if scopes is None else scopes.open()

    def in_flight(self) -> dict[CredentialId, int]:
        """Count the deliveries handed to each sender."""
        return {credential: circuit.in_flight for credential, circuit in self._circuits.items()}
