"""Retry policies as data: how long to wait, how often, and what the end is."""

from __future__ import annotations

from typing import Annotated, assert_never

from msgspec import Meta, Struct

from waypost.domain.content import Urgency
from waypost.domain.outcome import CredentialRejected, Gone, Outcome, Refused, Taken, Throttled, Unanswered, Unreachable
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from waypost.domain.words import Words

Count = Annotated[int, Meta(ge=0)]


class Jitter(Words):
    """A random change of a delay: none, up to 30 % longer, or anywhere from 0 to the delay."""

    NONE = "none"
    ADD30 = "add30"
    FULL = "full"


class Exhausted(Words):
    """The record left of a delivery whose retries are used up or that failed for good."""

    DLQ = "dlq"
    DROP = "drop"


class ErrorClass(Words):
    """The classes a policy can be chosen by (requirements S1-65)."""

    TRANSIENT = "transient"
    RATE_LIMIT = "rate_limit"
    GATEWAY_DOWN = "gateway_down"
    CREDENTIAL = "credential"
    TERMINAL = "terminal"


class RetryPolicy(Struct, frozen=True):
    """A schedule of retries: a list of delays, or base times two to the power of the retries made, up to a cap."""

    name: str
    """The name that records show."""
    max_retries: Count
    """Retries after the first attempt."""
    delays_ms: tuple[Count, ...] = ()
    """The delay before retry N, the last one repeated; empty: exponential."""
    base_ms: Count = SECOND_MS
    """The first delay, if exponential."""
    cap_ms: Count = HOUR_MS
    """The longest delay, if exponential."""
    unanswered_base_ms: Count | None = None
    """A longer base after no answer."""
    jitter: Jitter = Jitter.NONE
    """The random change of each delay."""
    max_age_ms: Count | None = None
    """Milliseconds of age from which there is no retry. Unset: no limit."""
    on_exhausted: Exhausted = Exhausted.DLQ
    """What a failure leaves: a dead letter, or its receipt alone."""

    def delay_ms(self, retries_made: int, jitter: float, base_ms: int | None = None) -> int:
        """Return the milliseconds until the next retry; *jitter* is random, 0 to 1. ValueError for a negative count."""
        if retries_made < 0:
            raise ValueError(f"retries made cannot be negative: {retries_made}")
        if self.delays_ms:
            delay = self.delays_ms[min(retries_made, len(self.delays_ms) - 1)]
        else:
            delay = min((base_ms or self.base_ms) << min(retries_made, 32), self.cap_ms)
        match self.jitter:
            case Jitter.NONE:
                return delay
            case Jitter.ADD30:
                return delay + int(delay * 0.3 * jitter)
            case Jitter.FULL:
                return int(delay * jitter)
            case _:
                assert_never(self.jitter)


def _listed(name: str, *seconds: int, end: Exhausted = Exhausted.DLQ, max_age_ms: int | None = None) -> RetryPolicy:
    delays = tuple(second * SECOND_MS for second in seconds)
    return RetryPolicy(name, len(delays), delays, on_exhausted=end, max_age_ms=max_age_ms)


EXPONENTIAL = RetryPolicy("s1_exponential", 5, unanswered_base_ms=5 * SECOND_MS, jitter=Jitter.ADD30)

POLICIES: dict[str, RetryPolicy] = {
    policy.name: policy
    for policy in (
        EXPONENTIAL,
        _listed("s0_stream", 30, 30, 30, 30, end=Exhausted.DROP),
        _listed("s2_critical", 2, 8, 32, 128, 200, 230),
        _listed("s2_default", 2, 8, 32),
        _listed("s2_low", 2, 8, end=Exhausted.DROP),
        _listed("s3_sweep", 0, 5 * MINUTE_MS // SECOND_MS, 15 * MINUTE_MS // SECOND_MS, max_age_ms=DAY_MS),
        RetryPolicy("s4_simple", 5),
        _listed("s4_publish", 5, 10, 20),
        _listed("s4_webhook", 1, 2, end=Exhausted.DROP),
    )
}
"""The named policies (requirements, table D-T2)."""


class RetryRules(Struct, frozen=True):
    """An app's retry policies: by error class first, then by urgency, then the default."""

    default: RetryPolicy = EXPONENTIAL
    """The policy where none below applies."""
    by_urgency: dict[Urgency, RetryPolicy] = {}
    """The policy of one urgency."""
    by_class: dict[ErrorClass, RetryPolicy] = {}
    """The policy of one class of errors, before `by_urgency`."""

    throttle_counts_as_retry: bool = False
    """Whether waiting for `rates` uses up a retry."""

    def choose(self, urgency: Urgency, error_class: ErrorClass) -> RetryPolicy:
        """Choose the policy for one failure."""
        return self.by_class.get(error_class) or self.by_urgency.get(urgency) or self.default

    def policy_for(self, named: str | None, urgency: Urgency, error_class: ErrorClass) -> RetryPolicy:
        """Choose the policy that the caller named (where this version knows it), else the app's for this failure."""
        return POLICIES.get(named or "") or self.choose(urgency, error_class)


def classify(outcome: Outcome) -> ErrorClass | None:
    """Find the error class of an outcome; None for a success."""
    match outcome:
        case Taken():
            return None
        case Gone() | Refused():
            return ErrorClass.TERMINAL
        case CredentialRejected():
            return ErrorClass.CREDENTIAL
        case Throttled():
            return ErrorClass.RATE_LIMIT
        case Unreachable():
            return ErrorClass.GATEWAY_DOWN
        case Unanswered():
            return ErrorClass.TRANSIENT
        case _:
            assert_never(outcome)
