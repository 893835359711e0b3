"""Circuits: breakers at work, one for each credential, and one for each part of a provider that fails on its own."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator

from waypost.domain.breaker import Breaker, BreakerRules, BreakerState, failed, held, late, probing, succeeded
from waypost.domain.device import Device
from waypost.domain.ids import CredentialId
from waypost.domain.notification import Lane
from waypost.domain.outcome import Denied, Outcome, Taken, Throttled, Unanswered, Unreachable
from waypost.ports.clock import Jitter
from waypost.runtime.concurrency import Concurrency
from waypost.telemetry import Event, Metric, Telemetry

REST_PER_WAIT = 1.5
"""Late for the next probe, in time for the one after: no delivery makes every probe."""

THROTTLED_IN_A_ROW = 3
"""Answers that may speak of the whole credential (or scope), with no success between them: then they do."""

PLACES = tuple(f"#{n}" for n in range(32))
"""For the scopes of one credential."""


class Circuit:
    """The breaker of one credential, or of one *scope* of it, with a ramp after it closes."""

    def __init__(
        self,
        credential: CredentialId,
        rules: BreakerRules,
        telemetry: Telemetry,
        concurrency: Concurrency,
        scope: str = "",
        place: str = "",
        jitter: Jitter = random.random,
    ) -> None:
        """*concurrency* counts what goes to this part of the provider alone: nothing where scopes are beneath."""
        self.place = place
        """Where it stands among the scopes of its credential; "" is the credential itself."""
        self.condition = f"breaker:{credential}{place}"
        self.ramp: int | None = None
        """Deliveries in flight allowed while coming back; None once it is over."""
        self.in_flight = 0
        self._breaker = Breaker(rules)
        self._telemetry = telemetry
        self._credential = credential
        self._scope = {"scope": scope} if scope else {}
        self._show(0.0)
        self._came_through = 0
        self._throttled = 0
        self._stuck = 0
        """In flight since before the breaker went half-open: none of them is the probe."""
        self.concurrency = concurrency
        self._jitter = jitter

    @property
    def state(self) -> BreakerState:
        """As of the last outcome or tick."""
        return self._breaker.state

    @property
    def is_well(self) -> bool:
        """Whether nothing is known of it that a new one would not know."""
        return self.ramp is None and self._breaker.failures == 0 and not self._throttled

    @property
    def is_at_rest(self) -> bool:
        """It is well, and nothing is in flight."""
        return self.in_flight == 0 and self.is_well

    @property
    def is_steady(self) -> bool:
        """Neither open nor coming back: what it has no room for now it has in a moment."""
        return self.ramp is None and self.state is BreakerState.CLOSED

    def room(self) -> int:
        """How many more may go: none while open, one as a probe, then ever more."""
        if self.is_well:
            return 1 << 30
        if self.state is BreakerState.OPEN:
            return 0
        if self.state is BreakerState.HALF_OPEN:
            return max(0, self._stuck + 1 - self.in_flight)
        return 1 << 30 if self.ramp is None else max(0, self.ramp - self.in_flight)

    def has_room(self, lane: Lane) -> bool:
        """Tell whether one more of *lane* may go; what is told that it may not waits under the condition."""
        if self.room() <= 0:
            return False
        if self.concurrency.room(lane) <= 0:
            self.concurrency.refused(lane)
            return False
        return True

    def room_for_parked(self) -> int:
        """How many may come back of what waits under the condition, whatever lane they are of."""
        return min(self.room(), self.concurrency.room_for_parked())

    def tick(self, now_s: float, stalled_s: float) -> None:
        """Let a probe through once the wait is over, and pause where answers are overdue.

        For *stalled_s* this process stood still since the last tick: that is not the provider's lateness.
        """
        before = self.state
        self._breaker = probing(self._breaker, now_s)
        if self.state is not before:
            self._stuck = self.in_flight
            self._telemetry.event(Event.BREAKER_PROBING, credential=self._credential, **self._scope)
        self.concurrency.tick(now_s, stalled_s)
        if self.state is not BreakerState.OPEN and self.concurrency.is_late(now_s):
            self._pause(now_s)

    def _pause(self, now_s: float) -> None:
        """Send nothing for a while: what was sent may have been taken, and its answer may still come."""
        before = self.state
        self._breaker = late(self._breaker, now_s, self._jitter())
        self.ramp = self._breaker.rules.ramp_start
        self.concurrency.slow_down(now_s)
        self._show(1.0)
        if before is BreakerState.CLOSED:
            self._telemetry.event(Event.BREAKER_OPENED, credential=self._credential, **self._scope)

    def left(self) -> None:
        """One in flight is back and says nothing; the count may be lost where the place was another scope's since."""
        self.in_flight = max(0, self.in_flight - 1)
        self._stuck = min(self._stuck, self.in_flight)

    def done(self, outcome: Outcome, now_s: float, capacity: int) -> float | None:
        """Learn from an outcome: only what speaks of the provider counts, not what speaks of one message.

        Seconds to rest for a delivery that only met what was known: the provider is still away.
        """
        self.left()
        if isinstance(outcome, Taken) and self.is_well:
            return None
        before = self.state
        if isinstance(outcome, Throttled):
            self._hold(outcome, now_s)
        elif isinstance(outcome, (Denied, Unreachable, Unanswered)):
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
        self._show(float(is_open))
        if isinstance(outcome, Denied):
            self._telemetry.event(Event.CREDENTIAL_DENIED, credential=self._credential, code=outcome.code)
        if is_open and before is BreakerState.CLOSED:
            self._telemetry.event(Event.BREAKER_OPENED, credential=self._credential, **self._scope)
        elif self.state is BreakerState.CLOSED:
            self._telemetry.event(Event.BREAKER_CLOSED, credential=self._credential, **self._scope)

    def _show(self, is_open: float) -> None:
        """The metric is the credential's alone: scopes are too many for a label."""
        if not self._scope:
            self._telemetry.gauge(Metric.BREAKER, is_open, credential=self._credential)


class Scopes:
    """The circuits of one credential's scopes: so many at most, for whoever registers devices may name ever new ones.

    A scope gets a place, and its deliveries are parked under the name of the place. So everything that may be parked
    can be named, by another worker and after a restart, too: what comes back meets the circuit of its own scope.
    """

    def __init__(
        self,
        credential: CredentialId,
        rules: BreakerRules,
        telemetry: Telemetry,
        scope_of: Callable[[Device], str],
        concurrency: Callable[[], Concurrency],
    ) -> None:
        """*concurrency* makes that of a new scope."""
        self._concurrency = concurrency
        self._credential = credential
        self._rules = rules
        self._telemetry = telemetry
        self._scope_of = scope_of
        self._circuits: OrderedDict[str, Circuit] = OrderedDict()
        self.conditions = frozenset(f"breaker:{credential}{place}" for place in PLACES)
        self._may_have_parked = set(self.conditions)

    def of(self, device: Device) -> Circuit:
        """The circuit before *device*; the one unused for longest makes room, at first among those at rest."""
        scope = self._scope_of(device)
        circuit = self._circuits.get(scope)
        if circuit is None:
            place = self._free_place()
            circuit = self._circuits[scope] = Circuit(
                self._credential, self._rules, self._telemetry, self._concurrency(), scope, place
            )
        else:
            self._circuits.move_to_end(scope)
        return circuit

    def tick(self, now_s: float, stalled_s: float) -> None:
        """Move open breakers on, and adjust limits."""
        for circuit in self._circuits.values():
            circuit.tick(now_s, stalled_s)

    def lifted(self, room: int) -> Iterator[tuple[str, int]]:
        """How many of what is parked under each condition may come back, *room* at most."""
        rooms = {circuit.condition: circuit.room_for_parked() for circuit in self._circuits.values()}
        for condition in self._may_have_parked:
            least = min(room, rooms.get(condition, room))
            if least > 0:
                yield condition, least

    def nothing_came(self, lifted: Iterable[str]) -> None:
        """The store has nothing under these conditions."""
        self._may_have_parked.difference_update(lifted)

    def parked(self, condition: str) -> None:
        """Something was durably parked under *condition*."""
        if condition in self.conditions:
            self._may_have_parked.add(condition)

    def found_parked(self, conditions: Collection[str]) -> None:
        """Something is parked under these, if not of this worker's shards."""
        self._may_have_parked |= self.conditions.intersection(conditions)

    def _free_place(self) -> str:
        if len(self._circuits) < len(PLACES):
            return PLACES[len(self._circuits)]
        at_rest = (scope for scope, circuit in self._circuits.items() if circuit.is_at_rest)
        scope = next(at_rest, next(iter(self._circuits)))
        return self._circuits.pop(scope).place
