"""A circuit breaker as a pure state machine: one per provider credential, or scope of one."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from waypost.domain.words import Words

_FEW = 3
"""The number of failures that are no accident."""


class Rest(Struct, frozen=True):
    """The wait of a delivery that failed while a breaker is open, so that the next probe is another's."""

    condition: str
    """The condition under which others wait meanwhile."""
    wait_ms: int
    """Milliseconds to wait, more than until the next probe."""


class BreakerState(Words):
    """The states of a breaker: let everything through, hold everything back, or let one probe through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerRules(Struct, frozen=True):
    """Settings of a breaker: when it opens, how long it waits before a probe, how fast it comes back."""

    failures_to_open: int = 20
    """The failures in a row that open it."""
    failing_for_s: float = 10.0
    """Fewer failures open it, too, when nothing but failures came for so long: three at the least."""
    probe_after_s: float = 5.0
    probe_cap_s: float = 60.0
    """Each failed probe doubles the wait, up to this; a provider that asks for more is probed as often, too."""
    ramp_start: int = 10
    """Parked deliveries let through after the first good probe; doubled each time they come through."""


class Breaker(Struct, frozen=True):
    """The state of one breaker; *opened_at* and the waits are on a monotonic clock, in seconds."""

    rules: BreakerRules
    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    failing_since: float = 0.0
    """The time of the first of these failures."""
    opened_at: float = 0.0
    wait_s: float = 0.0


def succeeded(breaker: Breaker) -> Breaker:
    """Close the breaker, since the provider answered properly; it remembers its wait until it has *recovered*."""
    if breaker.state is BreakerState.CLOSED and breaker.failures == 0:
        return breaker
    return msgspec.structs.replace(breaker, state=BreakerState.CLOSED, failures=0)


def recovered(breaker: Breaker) -> Breaker:
    """Forget how long it waited: until then, a relapse waits twice as long, so that it does not flap."""
    return msgspec.structs.replace(breaker, wait_s=0.0)


def renewed(breaker: Breaker) -> Breaker:
    """Half-open an open breaker at once, since what it failed with is replaced; otherwise return it unchanged."""
    if breaker.state is not BreakerState.OPEN:
        return breaker
    return msgspec.structs.replace(breaker, state=BreakerState.HALF_OPEN)


def failed(breaker: Breaker, now_s: float, *, at_once: bool = False) -> Breaker:
    """Count a failure that speaks of the provider (not of one message); *at_once* opens without counting."""
    if breaker.state is BreakerState.OPEN:
        return breaker
    since = now_s if breaker.failures == 0 else breaker.failing_since
    counted = msgspec.structs.replace(breaker, failures=breaker.failures + 1, failing_since=since)
    if breaker.state is BreakerState.CLOSED and not at_once and not _is_enough(counted, now_s):
        return counted
    longer = min(max(breaker.wait_s * 2, breaker.rules.probe_after_s), breaker.rules.probe_cap_s)
    return msgspec.structs.replace(counted, state=BreakerState.OPEN, opened_at=now_s, wait_s=longer)


def late(breaker: Breaker, now_s: float, jitter: float) -> Breaker:
    """Open the breaker after an overdue answer, as after a failure that needs no second. *jitter* is chance, 0 to 1.

    The wait is up to 30 % longer by chance, so that processes which found out together do not probe together.
    """
    opened = failed(breaker, now_s, at_once=True)
    return msgspec.structs.replace(opened, wait_s=opened.wait_s * (1 + 0.3 * jitter))


def held(breaker: Breaker, now_s: float, wait_s: float) -> Breaker:
    """Open the breaker for the pause that the provider asked for, but not past the next probe.

    Who asks for hours may be well in a minute (the hint may be of something between us), and one probe is no load.
    """
    capped_s = min(wait_s, breaker.rules.probe_cap_s)
    return msgspec.structs.replace(breaker, state=BreakerState.OPEN, opened_at=now_s, wait_s=capped_s)


def _is_enough(breaker: Breaker, now_s: float) -> bool:
    rules = breaker.rules
    if breaker.failures >= rules.failures_to_open:
        return True
    return breaker.failures >= _FEW and now_s - breaker.failing_since >= rules.failing_for_s


def probing(breaker: Breaker, now_s: float) -> Breaker:
    """Half-open the breaker once its wait is over, so that one delivery may probe; otherwise return it unchanged."""
    if breaker.state is BreakerState.OPEN and now_s >= breaker.opened_at + breaker.wait_s:
        return msgspec.structs.replace(breaker, state=BreakerState.HALF_OPEN)
    return breaker
