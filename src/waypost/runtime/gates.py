"""Gates: how many deliveries each lane may have in flight with each credential, behind one breaker a credential."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from waypost.domain.breaker import Breaker, BreakerRules, BreakerState, failed, held, probing, succeeded
from waypost.domain.ids import CredentialId
from waypost.domain.notification import Lane
from waypost.domain.outcome import Denied, Outcome, Throttled, Unanswered, Unreachable
from waypost.telemetry import Event, Metric, Telemetry

LANE_SHARES: Mapping[Lane, float] = {
    Lane.CRITICAL: 0.15,
    Lane.HIGH: 0.15,
    Lane.NORMAL: 0.35,
    Lane.LOW: 0.10,
    Lane.BULK: 0.15,
    Lane.SILENT: 0.10,
}
"""What part of a sender's capacity each lane may fill: fixed, so that no lane ever waits for another."""

REST_PER_WAIT = 1.5
"""Late for the next probe, in time for the one after: no delivery makes every probe."""

THROTTLED_IN_A_ROW = 3
"""Answers that may speak of the whole credential, with no success between them: then they do."""


class Circuit:
    """The breaker of one credential, with a ramp after it closes."""

    def __init__(self, credential: CredentialId, rules: BreakerRules, telemetry: Telemetry) -> None:
        self.credential = credential
        self.condition = f"breaker:{credential}"
        self.ramp: int | None = None
        """Deliveries in flight allowed while coming back; None once it is over."""
        self.in_flight = 0
        self._breaker = Breaker(rules)
        self._telemetry = telemetry
        telemetry.gauge(Metric.BREAKER, 0.0, credential=credential)
        self._came_through = 0
        self._throttled = 0

    @property
    def state(self) -> BreakerState:
        """As of the last outcome or tick."""
        return self._breaker.state

    def room(self) -> int:
        """How many more may go: none while open, one as a probe, then ever more."""
        if self.state is BreakerState.OPEN:
            return 0
        if self.state is BreakerState.HALF_OPEN:
            return max(0, 1 - self.in_flight)
        return 1 << 30 if self.ramp is None else max(0, self.ramp - self.in_flight)

    def tick(self, now_s: float) -> None:
        """Let a probe through once the wait is over."""
        before = self.state
        self._breaker = probing(self._breaker, now_s)
        if self.state is not before:
            self._telemetry.event(Event.BREAKER_PROBING, credential=self.credential)

    def done(self, outcome: Outcome, now_s: float, capacity: int) -> float | None:
        """Learn from an outcome: only what speaks of the provider counts, not what speaks of one message.

        Seconds to rest for a delivery that only met what was known: the provider is still away.
        """
        self.in_flight -= 1
        before = self.state
        if isinstance(outcome, Throttled):
            self._hold(outcome, now_s)
        elif isinstance(outcome, Denied | Unreachable | Unanswered):
            self._breaker = failed(self._breaker, now_s, at_once=isinstance(outcome, Denied))
            self.ramp = self._breaker.rules.ramp_start if self.state is BreakerState.OPEN else self.ramp
        else:
            self._throttled = 0
            self._breaker = succeeded(self._breaker)
            self._climb(capacity)
        if self.state is not before:
            self._say(before, outcome)
        is_still_away = before is not BreakerState.CLOSED and self.state is BreakerState.OPEN
        return self._breaker.wait_s * REST_PER_WAIT if is_still_away else None

    def _hold(self, throttled: Throttled, now_s: float) -> None:
        """A quota that is used up pauses the whole credential; the limit of one device, between others, does not."""
        self._throttled += throttled.whole
        if self._throttled >= THROTTLED_IN_A_ROW and throttled.wait_ms:
            self._throttled = 0
            self._breaker = held(self._breaker, now_s, throttled.wait_ms / 1000)
            self.ramp = self._breaker.rules.ramp_start

    def _climb(self, capacity: int) -> None:
        if self.ramp is None:
            return
        self._came_through += 1
        if self._came_through >= self.ramp:
            self._came_through = 0
            self.ramp = None if self.ramp * 2 >= capacity else self.ramp * 2

    def _say(self, before: BreakerState, outcome: Outcome) -> None:
        is_open = self.state is BreakerState.OPEN
        self._telemetry.gauge(Metric.BREAKER, float(is_open), credential=self.credential)
        if isinstance(outcome, Denied):
            self._telemetry.event(Event.CREDENTIAL_DENIED, credential=self.credential, code=outcome.code)
        if is_open and before is BreakerState.CLOSED:
            self._telemetry.event(Event.BREAKER_OPENED, credential=self.credential)
        elif self.state is BreakerState.CLOSED:
            self._telemetry.event(Event.BREAKER_CLOSED, credential=self.credential)


class LaneGate:
    """One lane's budget with one credential (fulfils pipeline.deliver.Gate)."""

    def __init__(self, lane: Lane, circuit: Circuit, limit: int) -> None:
        self.condition = f"room:{lane}/{circuit.credential}"
        self.circuit = circuit
        self.may_have_parked = True
        """Whether the store may hold deliveries under this gate's conditions; true until it said there are none."""
        self._limit = limit
        self._slack = max(1, limit // 4)
        self._in_flight = 0

    def room(self) -> int:
        """How many more may be leased for."""
        return max(0, min(self._limit - self._in_flight, self.circuit.room()))

    def admit(self) -> str | None:
        """Take a place, or name the condition to wait for; a batch may overshoot the limit by a quarter."""
        if self.circuit.room() <= 0:
            return self.circuit.condition
        if self._in_flight >= self._limit + self._slack:
            return self.condition
        self._in_flight += 1
        self.circuit.in_flight += 1
        return None

    def done(self, outcome: Outcome, now_s: float) -> float | None:
        """Give the place back and learn from the outcome; seconds to rest where the provider is known to be away."""
        self._in_flight -= 1
        return self.circuit.done(outcome, now_s, self._limit)

    def forfeit(self) -> None:
        """Give the place back untried."""
        self._in_flight -= 1
        self.circuit.in_flight -= 1


class Gates:
    """Every gate of a worker."""

    def __init__(
        self,
        capacities: Mapping[CredentialId, int],
        budgets: Mapping[Lane, int],
        rules: BreakerRules,
        telemetry: Telemetry,
    ) -> None:
        """*capacities* are what each sender can usefully hold; *budgets* replace a lane's share of them."""
        self._circuits = {each: Circuit(each, rules, telemetry) for each in capacities}
        self._gates: dict[tuple[Lane, CredentialId], LaneGate] = {}
        for lane, share in LANE_SHARES.items():
            for credential, circuit in self._circuits.items():
                budget = budgets.get(lane) or max(1, round(capacities[credential] * share))
                self._gates[lane, credential] = LaneGate(lane, circuit, budget)

    def of(self, lane: Lane) -> Callable[[CredentialId], LaneGate]:
        """The gates of one lane, by credential."""
        return lambda credential: self._gates[lane, credential]

    def room(self, lane: Lane) -> int:
        """A lane leases on while any credential has room: the most that one has; with none at all, a token few."""
        rooms = [gate.room() for (of_lane, _), gate in self._gates.items() if of_lane is lane]
        return max(rooms, default=100)

    def tick(self, now_s: float) -> None:
        """Move open breakers on."""
        for circuit in self._circuits.values():
            circuit.tick(now_s)

    def lifted(self) -> dict[str, int]:
        """How many of what is parked under each condition may come back now; nothing where nothing may be parked."""
        lifted: dict[str, int] = {}
        for gate in self._waiting():
            room = gate.room()
            if room > 0:
                lifted[gate.condition] = room
                lifted[gate.circuit.condition] = max(lifted.get(gate.circuit.condition, 0), room)
        return lifted

    def nothing_came(self, lifted: Mapping[str, int]) -> None:
        """The store has nothing under these conditions."""
        for gate in self._waiting():
            if gate.condition in lifted:
                gate.may_have_parked = False

    def parked(self, condition: str) -> None:
        """Something was durably parked under *condition*."""
        for gate in self._gates.values():
            if condition in (gate.condition, gate.circuit.condition):
                gate.may_have_parked = True

    def expect_parked(self) -> None:
        """Anything may be parked: shards came in."""
        for gate in self._gates.values():
            gate.may_have_parked = True

    def in_flight(self) -> dict[CredentialId, int]:
        """Deliveries handed to each sender."""
        return {credential: circuit.in_flight for credential, circuit in self._circuits.items()}

    def _waiting(self) -> Iterator[LaneGate]:
        return (gate for gate in self._gates.values() if gate.may_have_parked)
