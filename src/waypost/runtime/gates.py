"""Gates: what each lane may lease, and what may come back, by the room that its credentials have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from waypost.domain.breaker import BreakerRules, BreakerState
from waypost.domain.credential import CredentialId
from waypost.domain.fallback import Fallbacks
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.domain.turns import turn_after
from waypost.ports.sender import Capabilities
from waypost.ports.work import Work
from waypost.runtime.circuits import Circuit
from waypost.runtime.concurrency import Concurrency
from waypost.runtime.lane_gate import SOON_S, LaneGate
from waypost.runtime.rates import LANE_SHARES, RateGate
from waypost.runtime.scopes import Scopes
from waypost.telemetry import Telemetry

WITHOUT_SENDERS = 100
"""The number of items a lane leases where no app has a credential, to say so of each notification."""

TRICKLE = 100
"""The items a lane leases each ``SOON_S`` while every breaker is open: some of it ends without being sent."""

RATED_A_TURN = 20
"""The searches in one release for what waited for a rate, the last credential's aside; the next go on from there."""


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
        fallbacks: Fallbacks | None = None,
    ) -> None:
        """Create the gates; *senders* are what each can do; *budgets* replace a lane's share of what they can hold.

        *rates* are of those whose provider is to get only so much in a time. Where nothing *parks*, nothing is leased
        that cannot be sent. *fallbacks* say who stands in for whom: what waits for one comes back for any of them.
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
        self._fallbacks = fallbacks or Fallbacks()
        for first, (_, *others) in self._fallbacks.chains.items():
            for gates in self._gates.values():
                for condition in (gates[first].condition, gates[first].circuit.condition):
                    self._of_conditions[condition] += [gates[each] for each in others]

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
        tight: list[LaneGate] = []
        roomy: list[LaneGate] = []
        for gate in steady:
            (tight if gate.is_tight else roomy).append(gate)
        if waited_s < SOON_S and any(gate.is_moving(now_s) for gate in tight):
            return 0
        if roomy:
            return min(gate.room_for_items() for gate in roomy)
        return max((gate.room_for_items() for gate in gates), default=WITHOUT_SENDERS)

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

    def renewed(self, credential: CredentialId) -> None:
        """Let probes through at once: the credential is another now."""
        self._circuits[credential].renewed()
        if credential in self._scopes:
            self._scopes[credential].renewed()

    def lifted(self) -> dict[str, int]:
        """Return how many parked deliveries may come back under each condition; nothing where nothing may be parked."""
        rooms = {
            condition: max(gate.room() for gate in self._of_conditions[condition])
            for condition in self._may_have_parked
        }
        lifted = {condition: room for condition, room in rooms.items() if room > 0}
        for credential, scopes in self._scopes.items():
            lifted.update(scopes.lifted(max(self._room_for(credential, lane) for lane in LANE_SHARES)))
        return lifted

    def _room_for(self, credential: CredentialId, lane: Lane) -> int:
        """Return how many more deliveries of *credential* may go, with it or with one that stands in for it."""
        return max(self._gates[lane][each].room() for each in self._fallbacks.chain(credential))

    async def release_rated(self, work: Work, now: Instant) -> int:
        """Let come back what waited for a rate, each lane by itself: it is known then which has nothing more.

        Each is a search of its own, so that of many credentials only some have their turn.
        """
        released, searches = 0, 0
        for credential in self._rated_in_turn():
            rate = self._rates[credential]
            for lane, n in rate.waiting.turns():
                room = min(n, self._room_for(credential, lane))
                if room > 0:
                    came = await work.promote_due(now, room, {rate.waiting.conditions[lane]: room})
                    searches += 1
                    if came is not None:
                        rate.waiting.came_back(lane, came)
                        released += came
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
