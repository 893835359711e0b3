"""A circuit: a breaker at work, before a whole credential or before one part of its provider."""

from __future__ import annotations

import random

from waypost.domain.breaker import (
    Breaker,
    BreakerRules,
    BreakerState,
    Rest,
    failed,
    held,
    late,
    probing,
    recovered,
    renewed,
    succeeded,
)
from waypost.domain.credential import CredentialId
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Outcome, Taken, Throttled, Unanswered, Unreachable
from waypost.domain.time import SECOND_MS
from waypost.ports.clock import RandomSource
from waypost.runtime.concurrency import Concurrency
from waypost.runtime.refusals import Refusals, Weight
from waypost.telemetry import Event, Metric, Telemetry

REST_PER_WAIT = 1.5
"""Late for the next probe, in time for the one after: no delivery makes every probe."""

THROTTLED_IN_A_ROW = 3
"""The answers in a row, without a success, after which throttling counts for the whole credential (or scope)."""

LATE = "late"
"""The cause of a breaker's opening that was no outcome: an answer that is overdue."""


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
        jitter: RandomSource = random.random,
    ) -> None:
        """Create the circuit; *concurrency* counts this part of the provider alone (nothing, if scopes divide it)."""
        self.place = place
        """The place among the scopes of its credential; "" is the credential itself."""
        self.condition = f"breaker:{credential}{place}"
        self.ramp: int | None = None
        """Deliveries in flight allowed while coming back; None once it is over."""
        self.in_flight = 0
        self._breaker = Breaker(rules)
        self._telemetry = telemetry
        self._credential = str(credential)
        self._scope = {"scope": scope} if scope else {}
        self._show(0.0)
        self._came_through = 0
        self._throttled = 0
        self._stuck = 0
        """The number in flight since before the breaker went half-open: none of them is the probe."""
        self.concurrency = concurrency
        self._jitter = jitter
        self._refusals: Refusals | None = None
        """The refusals; None before the first one."""
        self.opened_by = ""
        """The code of the outcome that opened it last."""
        self._was_denied = False

    @property
    def scope(self) -> str:
        """The part of the provider that it guards; "" is the whole credential."""
        return self._scope.get("scope", "")

    @property
    def state(self) -> BreakerState:
        """The breaker's state as of the last outcome or tick."""
        return self._breaker.state

    @property
    def is_well(self) -> bool:
        """Whether it has no history that a new circuit would lack."""
        return self.ramp is None and self._breaker.failures == 0 and not self._throttled

    @property
    def is_at_rest(self) -> bool:
        """Whether it has no history and nothing is in flight."""
        return self.in_flight == 0 and self.is_well

    @property
    def is_steady(self) -> bool:
        """Whether it is neither open nor coming back: what it has no room for now it has in a moment."""
        return self.ramp is None and self.state is BreakerState.CLOSED

    @property
    def is_denied(self) -> bool:
        """Whether it is open, or half-open, since the account is refused."""
        return self._was_denied and self.state is not BreakerState.CLOSED

    @property
    def is_shut(self) -> bool:
        """Whether it is open and not even a probe may go."""
        return self.state is not BreakerState.CLOSED and self.room() == 0

    def room(self) -> int:
        """Return how many more deliveries may go: none while open, one as a probe, then ever more."""
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
        """Return how many parked deliveries may come back under the condition, whatever their lane."""
        return min(self.room(), self.concurrency.room_for_parked())

    def tick(self, now_s: float, stalled_s: float) -> None:
        """Let a probe through once the wait is over, and pause where answers are overdue.

        For *stalled_s* this process stood still since the last tick: that is not the provider's lateness.
        """
        self._half_open(probing(self._breaker, now_s))
        self.concurrency.tick(now_s, stalled_s)
        if self.state is not BreakerState.OPEN and self.concurrency.is_late(now_s):
            self._pause(now_s)

    def renewed(self) -> None:
        """Let a probe through at once, and forget who was refused: the credential is another now."""
        self._refusals = None
        self._half_open(renewed(self._breaker))

    def _half_open(self, breaker: Breaker) -> None:
        before, self._breaker = self.state, breaker
        if self.state is not before:
            self._stuck = self.in_flight
            self._telemetry.event(Event.BREAKER_PROBING, credential=self._credential, **self._scope)

    def _pause(self, now_s: float) -> None:
        """Send nothing for a while: what was sent may have been taken, and its answer may still come."""
        before = self.state
        self._breaker = late(self._breaker, now_s, self._jitter())
        self._was_denied = False
        self.ramp = self._breaker.rules.ramp_start
        self.concurrency.slow_down(now_s)
        self._show(1.0)
        self._say_open(before, LATE)

    @property
    def is_calm(self) -> bool:
        """Whether what is taken says nothing new: all is well, and nobody was refused."""
        return self._refusals is None and self.is_well

    def left(self, n: int = 1) -> None:
        """Take back *n* deliveries that say nothing of the provider; the count may be lost if a place was reused."""
        self.in_flight = max(0, self.in_flight - n)
        self._stuck = min(self._stuck, self.in_flight)

    def done(
        self, outcome: Outcome, now_s: float, capacity: int, token: str = "", *, is_past: bool = False
    ) -> Rest | None:
        """Learn from an outcome: only what speaks of the provider counts, not what speaks of one message.

        *is_past* says that what was handed over later has been answered: it is unanswered for a reason of its own then.
        The rest that follows where it is open now, for whoever was refused or only met what was known: so that no
        delivery makes two probes in a row while there is another.
        """
        self.left()
        if isinstance(outcome, Taken):
            if self._refusals is not None:
                self._refusals.taken(token)
            if self.is_well:
                return None
        before = self.state
        if isinstance(outcome, Throttled):
            self._hold(outcome, now_s)
        elif isinstance(outcome, CredentialRejected):
            self._refuse(outcome, now_s, token)
        elif isinstance(outcome, (Unreachable, Unanswered)):
            if not is_past:
                self._fail(now_s)
        else:
            self._throttled = 0
            self._breaker = succeeded(self._breaker)
            self._climb(capacity)
        if self.state is not before:
            self._say(before, outcome)
        if self.state is not BreakerState.OPEN or (
            before is BreakerState.CLOSED and not isinstance(outcome, CredentialRejected)
        ):
            return None
        return Rest(self.condition, int(self._breaker.wait_s * REST_PER_WAIT * SECOND_MS))

    def _refuse(self, denied: CredentialRejected, now_s: float, token: str) -> None:
        """Weigh a refusal: it stops the others too, unless it is known or likely that this device alone is meant."""
        self._telemetry.count(Metric.DENIED, credential=self._credential, reach=denied.reach)
        self._refusals = self._refusals or Refusals()
        weight = self._refusals.weigh(denied, token)
        if weight is not Weight.NOTHING or self.state is not BreakerState.CLOSED:
            self._fail(now_s, at_once=weight is Weight.ALL, denied=True)

    def _fail(self, now_s: float, *, at_once: bool = False, denied: bool = False) -> None:
        if self.state is not BreakerState.OPEN:
            self._was_denied = denied
        self._breaker = failed(self._breaker, now_s, at_once=at_once)
        self.ramp = self._breaker.rules.ramp_start if self.state is BreakerState.OPEN else self.ramp

    def _hold(self, throttled: Throttled, now_s: float) -> None:
        """Pause the whole credential where its quota is used up; a single device's limit, between others, does not."""
        if self.state is BreakerState.HALF_OPEN and throttled.whole:
            self._fail(now_s)
            self._breaker = held(self._breaker, now_s, max(self._breaker.wait_s, (throttled.wait_ms or 0) / 1000))
            return
        self._throttled += throttled.whole
        if self._throttled >= THROTTLED_IN_A_ROW and throttled.wait_ms:
            self._throttled = 0
            self._was_denied = False
            self._breaker = held(self._breaker, now_s, throttled.wait_ms / 1000)
            self.ramp = self._breaker.rules.ramp_start

    def _climb(self, capacity: int) -> None:
        if self.ramp is None:
            return
        self._came_through += 1
        if self._came_through >= self.ramp:
            self._came_through = 0
            self.ramp = None if self.ramp * 2 >= capacity else self.ramp * 2
            if self.ramp is None:
                self._breaker = recovered(self._breaker)

    def _say(self, before: BreakerState, outcome: Outcome) -> None:
        is_open = self.state is BreakerState.OPEN
        self._show(float(is_open))
        if isinstance(outcome, CredentialRejected) and not self._scope:
            self._telemetry.event(Event.CREDENTIAL_DENIED, credential=self._credential, code=outcome.code)
        if is_open and not isinstance(outcome, Taken):
            self._say_open(before, outcome.code)
        elif self.state is BreakerState.CLOSED:
            self._telemetry.event(Event.BREAKER_CLOSED, credential=self._credential, **self._scope)

    def _say_open(self, before: BreakerState, code: str) -> None:
        self.opened_by = code
        if before is BreakerState.CLOSED:
            named = {"credential": self._credential, **self._scope, "code": code}
            self._telemetry.event(Event.BREAKER_OPENED, **named)

    def _show(self, is_open: float) -> None:
        """Set the metric for the whole credential only: scopes are too many for a label."""
        if not self._scope:
            self._telemetry.gauge(Metric.BREAKER, is_open, credential=self._credential)
