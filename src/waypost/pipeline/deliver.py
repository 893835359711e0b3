"""Deliver: which of the planned deliveries may go on the wire now, and what the others wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.ids import AppId
from waypost.domain.notification import Guarantee
from waypost.domain.retry import ErrorClass, RetryRules
from waypost.domain.settlement import Change, Intent, Settlement, held_back, parked_or_expired
from waypost.domain.time import Instant, later

INTENT_MARGIN_MS = 5_000
"""Milliseconds past a request's own deadline before an intent without an outcome is closed as unknown."""


class Pause(Struct, frozen=True):
    """The answer that a limit is reached: a delivery waits a time, not for a condition."""

    wait_ms: int
    code: str
    """The code ``rate_limited`` or ``device_limited``, in place of a provider's word."""
    spends_retry: bool = False


class Gate(Protocol):
    """The in-flight budget, breakers and limits before one credential, in one lane."""

    def admit(self, delivery: Delivery) -> str | Pause | None:
        """Take a place and return None, or return the condition or the time to wait for."""
        ...


def admit(
    deliveries: Iterable[Delivery],
    gates: Mapping[CredentialId, Gate],
    rules: Mapping[AppId, RetryRules],
    now: Instant,
    jitter: float,
) -> tuple[list[Delivery], list[Change]]:
    """Divide deliveries into those that may go now and changes that put off the others."""
    going: list[Delivery] = []
    waiting: list[Change] = []
    for delivery in deliveries:
        match gates[delivery.credential].admit(delivery):
            case None:
                going.append(delivery)
            case Pause() as pause:
                settlement = _paused(delivery, pause, rules[delivery.credential.app], now, jitter)
                waiting.append(Change(delivery.n, delivery.attempt, settlement, now))
            case condition:
                settlement = parked_or_expired(delivery, condition, now, delivery.attempt)
                waiting.append(Change(delivery.n, delivery.attempt, settlement, now))
    return going, waiting


def _paused(delivery: Delivery, pause: Pause, rules: RetryRules, now: Instant, jitter: float) -> Settlement:
    policy = (
        rules.policy_for(delivery.retry_policy, delivery.message.urgency, ErrorClass.RATE_LIMIT)
        if pause.spends_retry
        else None
    )
    return held_back(delivery, pause.wait_ms, pause.code, policy, now, jitter)


def needs_intent(delivery: Delivery) -> bool:
    """Tell whether the attempt must be on record before its first byte leaves."""
    return delivery.guarantee is Guarantee.AT_MOST_ONCE


def intent_lasts_ms(request_timeout_ms: int) -> int:
    """Return for how long an intent stands, milliseconds: then it is closed as unknown unless it is settled."""
    return request_timeout_ms + INTENT_MARGIN_MS


def intent_for(delivery: Delivery, request_timeout_ms: int, now: Instant) -> Change:
    """Record an attempt that is about to be made."""
    deadline = later(now, intent_lasts_ms(request_timeout_ms))
    return Change(delivery.n, delivery.attempt, Intent(deadline), now)
