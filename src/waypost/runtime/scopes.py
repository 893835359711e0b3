"""Scopes: the parts of a credential's provider that refuse or fail on their own, each with a circuit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from waypost.domain.breaker import BreakerRules, BreakerState
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.runtime.circuits import Circuit
from waypost.runtime.concurrency import Concurrency
from waypost.telemetry import Metric, Telemetry

PLACES = tuple(f"#{n}" for n in range(32))
"""The places for the scopes of one credential."""


class Scopes:
    """The circuits of one credential's scopes, up to a limit, since whoever registers devices may name ever new ones.

    A scope gets a place, and its deliveries are parked under the name of the place. So everything that may be parked
    can be named, by another worker and after a restart, too: what comes back meets the circuit of its own scope.
    """

    def __init__(
        self,
        credential: CredentialId,
        rules: BreakerRules,
        telemetry: Telemetry,
        scope_of: Callable[[Delivery], str],
        concurrency: Callable[[], Concurrency],
        *,
        are_watched: bool,
    ) -> None:
        """Create the scopes; *concurrency* makes the counter of a new scope."""
        self._concurrency = concurrency
        self.are_watched = are_watched
        """Whether every delivery passes its scope; where scopes are only refused apart, from the first refusal on."""
        self._credential = credential
        self._rules = rules
        self._telemetry = telemetry
        self._scope_of = scope_of
        self._circuits: OrderedDict[str, Circuit] = OrderedDict()
        self.conditions = frozenset(f"breaker:{credential}{place}" for place in PLACES)
        self._may_have_parked: set[str] = set()
        self._open = -1

    def of(self, delivery: Delivery) -> Circuit:
        """Return the circuit for *delivery*; the one unused for longest makes room, at first among those at rest."""
        self.are_watched = True
        scope = self._scope_of(delivery)
        circuit = self._circuits.get(scope)
        if circuit is None:
            place = self._free_place()
            circuit = self._circuits[scope] = Circuit(
                self._credential, self._rules, self._telemetry, self._concurrency(), scope, place
            )
        else:
            self._circuits.move_to_end(scope)
        return circuit

    def known(self, deliveries: Sequence[Delivery]) -> dict[Circuit, list[Delivery]] | None:
        """Divide *deliveries* by their circuits, the last one's at the end; None where one of them has none yet."""
        parts: dict[Circuit, list[Delivery]] = {}
        for delivery in deliveries:
            circuit = self._circuits.get(self._scope_of(delivery))
            if circuit is None:
                return None
            its = parts.pop(circuit, [])
            its.append(delivery)
            parts[circuit] = its
        return parts

    def used(self, circuits: Iterable[Circuit]) -> None:
        """Note that something was let in behind *circuits*, in this order."""
        for circuit in circuits:
            self._circuits.move_to_end(circuit.scope)

    def tick(self, now_s: float, stalled_s: float) -> None:
        """Move open breakers on, adjust limits, and tell how many breakers are open."""
        for circuit in self._circuits.values():
            circuit.tick(now_s, stalled_s)
        if (n := len(self.open())) != self._open:
            self._open = n
            self._telemetry.gauge(Metric.SCOPES, n, credential=str(self._credential))

    def renewed(self) -> None:
        """Let a probe of each through at once: the credential is another now."""
        for circuit in self._circuits.values():
            circuit.renewed()

    def open(self) -> list[Circuit]:
        """List the circuits whose breakers are not closed."""
        return [circuit for circuit in self._circuits.values() if circuit.state is not BreakerState.CLOSED]

    def lifted(self, room: int) -> Iterator[tuple[str, int]]:
        """Yield how many parked deliveries may come back under each condition, *room* at most."""
        rooms = {circuit.condition: circuit.room_for_parked() for circuit in self._circuits.values()}
        for condition in self._may_have_parked:
            least = min(room, rooms.get(condition, room))
            if least > 0:
                yield condition, least

    def nothing_came(self, lifted: Collection[str]) -> None:
        """Note that the store has nothing parked under these conditions."""
        self._may_have_parked.difference_update(lifted)
        for circuit in self._circuits.values():
            if circuit.condition in lifted:
                circuit.concurrency.nothing_waits()

    def parked(self, condition: str) -> None:
        """Note that something was durably parked under *condition*."""
        if condition in self.conditions:
            self._may_have_parked.add(condition)

    def found_parked(self, conditions: Collection[str]) -> None:
        """Note that something is parked under these conditions, if not of this worker's shards."""
        self._may_have_parked |= self.conditions.intersection(conditions)

    def _free_place(self) -> str:
        if len(self._circuits) < len(PLACES):
            return PLACES[len(self._circuits)]
        at_rest = (scope for scope, circuit in self._circuits.items() if circuit.is_at_rest)
        scope = next(at_rest, next(iter(self._circuits)))
        return self._circuits.pop(scope).place
