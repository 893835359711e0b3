"""Gates: how many deliveries each lane may have in flight with each credential, behind its breakers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from waypost.domain.breaker import BreakerRules
from waypost.domain.delivery import Delivery
from waypost.domain.ids import CredentialId
from waypost.domain.notification import Lane
from waypost.domain.outcome import Denied, Outcome, Taken
from waypost.ports.sender import Capabilities
from waypost.runtime.circuits import Circuit, Scopes
from waypost.telemetry import Telemetry

LANE_SHARES: Mapping[Lane, float] = {
    Lane.CRITICAL: 0.15,
    Lane.HIGH: 0.15,
    Lane.NORMAL: 0.35,
    Lane.LOW: 0.10,
    Lane.BULK: 0.15,
    Lane.SILENT: 0.10,
}
"""What part of a sender's capacity each lane may fill: fixed, so that no lane ever waits for another."""


class LaneGate:
    """One lane's budget with one credential (fulfils pipeline.deliver.Gate)."""

    def __init__(
        self, lane: Lane, credential: CredentialId, circuit: Circuit, limit: int, scopes: Scopes | None
    ) -> None:
        self.condition = f"room:{lane}/{credential}"
        self.circuit = circuit
        self._scopes = scopes
        self.may_have_parked = True
        """Whether the store may hold deliveries under this gate's conditions; true until it said there are none."""
        self._limit = limit
        self._slack = max(1, limit // 4)
        self._in_flight = 0

    def room(self) -> int:
        """How many more may be leased for."""
        return max(0, min(self._limit - self._in_flight, self.circuit.room()))

    def admit(self, delivery: Delivery) -> str | None:
        """Take a place, or name the condition to wait for; a batch may overshoot the limit by a quarter."""
        if self.circuit.room() <= 0:
            return self.circuit.condition
        if self._in_flight >= self._limit + self._slack:
            return self.condition
        if self._scopes is not None:
            scope = self._scopes.of(delivery.device)
            if scope.room() <= 0:
                return scope.condition
            scope.in_flight += 1
        self._in_flight += 1
        self.circuit.in_flight += 1
        return None

    def done(self, delivery: Delivery, outcome: Outcome, now_s: float) -> float | None:
        """Give the place back and learn from the outcome; seconds to rest where the provider is known to be away."""
        self._in_flight -= 1
        if self._scopes is None:
            return self.circuit.done(outcome, now_s, self._limit)
        scope = self._scopes.of(delivery.device)
        if isinstance(outcome, Denied):
            scope.left()
            return self.circuit.done(outcome, now_s, self._limit)
        if isinstance(outcome, Taken):
            self.circuit.done(outcome, now_s, self._limit)
        else:
            self.circuit.left()
        return scope.done(outcome, now_s, self._limit)

    def forfeit(self, delivery: Delivery) -> None:
        """Give the place back untried."""
        self._in_flight -= 1
        self.circuit.left()
        if self._scopes is not None:
            self._scopes.of(delivery.device).left()


class Gates:
    """Every gate of a worker."""

    def __init__(
        self,
        senders: Mapping[CredentialId, Capabilities],
        budgets: Mapping[Lane, int],
        rules: BreakerRules,
        telemetry: Telemetry,
    ) -> None:
        """*senders* are what each can do; *budgets* replace a lane's share of what they can usefully hold."""
        self._circuits = {each: Circuit(each, rules, telemetry) for each in senders}
        self._scopes = {
            each: Scopes(each, rules, telemetry, sender.scope_of)
            for each, sender in senders.items()
            if sender.scope_of is not None
        }
        self._gates: dict[tuple[Lane, CredentialId], LaneGate] = {}
        for lane, share in LANE_SHARES.items():
            for credential, circuit in self._circuits.items():
                budget = budgets.get(lane) or max(1, round(senders[credential].max_in_flight * share))
                scopes = self._scopes.get(credential)
                self._gates[lane, credential] = LaneGate(lane, credential, circuit, budget, scopes)

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
        for scopes in self._scopes.values():
            scopes.tick(now_s)

    def lifted(self) -> dict[str, int]:
        """How many of what is parked under each condition may come back now; nothing where nothing may be parked."""
        lifted: dict[str, int] = {}
        for gate in self._waiting():
            room = gate.room()
            if room > 0:
                lifted[gate.condition] = room
                lifted[gate.circuit.condition] = max(lifted.get(gate.circuit.condition, 0), room)
        for credential, scopes in self._scopes.items():
            room = max(self._gates[lane, credential].room() for lane in LANE_SHARES)
            lifted.update(scopes.lifted(room))
        return lifted

    def nothing_came(self, lifted: Mapping[str, int]) -> None:
        """The store has nothing under these conditions."""
        for gate in self._waiting():
            if gate.condition in lifted:
                gate.may_have_parked = False
        for scopes in self._scopes.values():
            scopes.nothing_came(lifted)

    def parked(self, condition: str) -> None:
        """Something was durably parked under *condition*."""
        for gate in self._gates.values():
            if condition in (gate.condition, gate.circuit.condition):
                gate.may_have_parked = True
        for scopes in self._scopes.values():
            scopes.parked(condition)

    def expect_parked(self) -> None:
        """Anything may be parked: shards came in."""
        for gate in self._gates.values():
            gate.may_have_parked = True
        for scopes in self._scopes.values():
            scopes.expect_parked()

    def in_flight(self) -> dict[CredentialId, int]:
        """Deliveries handed to each sender."""
        return {credential: circuit.in_flight for credential, circuit in self._circuits.items()}

    def _waiting(self) -> Iterator[LaneGate]:
        return (gate for gate in self._gates.values() if gate.may_have_parked)
