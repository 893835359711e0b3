"""A circuit breaker as a pure state machine: one per provider credential."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class BreakerState(StrEnum):
    """Let through, hold back, or let a probe through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerRules(Struct, frozen=True):
    """When to open, how long to wait before a probe, how fast to come back."""

    failures_to_open: int = 20
    """Failures in a row."""
    probe_after_s: float = 5.0
    probe_cap_s: float = 60.0
    """Each failed probe doubles the wait, up to this."""
    ramp_start: int = 10
    """Parked deliveries let through after the first good probe; doubled each time they come through."""


class Breaker(Struct, frozen=True):
    """The state of one breaker; *opened_at* and the waits are on a monotonic clock, in seconds."""

    rules: BreakerRules
    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    opened_at: float = 0.0
    wait_s: float = 0.0


def succeeded(breaker: Breaker) -> Breaker:
    """After the provider answered properly: closed."""
    if breaker.state is BreakerState.CLOSED and breaker.failures == 0:
        return breaker
    return msgspec.structs.replace(breaker, state=BreakerState.CLOSED, failures=0, wait_s=0.0)


def failed(breaker: Breaker, now_s: float, *, at_once: bool = False) -> Breaker:
    """After a failure that speaks of the provider (not of one message); *at_once* opens without counting."""
    failures = breaker.failures + 1
    if breaker.state is BreakerState.OPEN:
        return breaker
    if breaker.state is BreakerState.CLOSED and not at_once and failures < breaker.rules.failures_to_open:
        return msgspec.structs.replace(breaker, failures=failures)
    longer = min(max(breaker.wait_s * 2, breaker.rules.probe_after_s), breaker.rules.probe_cap_s)
    return msgspec.structs.replace(breaker, state=BreakerState.OPEN, failures=failures, opened_at=now_s, wait_s=longer)


def probing(breaker: Breaker, now_s: float) -> Breaker:
    """Half-open once the wait is over, so that one delivery may probe; otherwise unchanged."""
    if breaker.state is BreakerState.OPEN and now_s >= breaker.opened_at + breaker.wait_s:
        return msgspec.structs.replace(breaker, state=BreakerState.HALF_OPEN)
    return breaker
