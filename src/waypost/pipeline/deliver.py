"""Deliver: which of the planned deliveries may go on the wire now, and what the others wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from waypost.domain.delivery import Delivery
from waypost.domain.ids import CredentialId
from waypost.domain.notification import Guarantee
from waypost.domain.settlement import Change, Intent, parked_or_expired
from waypost.domain.time import Instant, later

INTENT_MARGIN_MS = 5_000
"""Past a request's own deadline, before an intent without an outcome is closed as unknown."""


class Gate(Protocol):
    """The in-flight budget and breakers before one credential, in one lane."""

    def admit(self, delivery: Delivery) -> str | None:
        """Take a place and say None, or the condition to wait for."""
        ...


def admit(
    deliveries: Iterable[Delivery], gates: Mapping[CredentialId, Gate], now: Instant
) -> tuple[list[Delivery], list[Change]]:
    """Those that may go now, and the changes that park the others; every delivery is in one of the two."""
    going: list[Delivery] = []
    parked: list[Change] = []
    for delivery in deliveries:
        condition = gates[delivery.credential].admit(delivery)
        if condition is None:
            going.append(delivery)
        else:
            settlement = parked_or_expired(delivery, condition, now, delivery.attempt)
            parked.append(Change(delivery.n, delivery.attempt, settlement, now))
    return going, parked


def needs_intent(delivery: Delivery) -> bool:
    """Whether the attempt must be on record before its first byte leaves."""
    return delivery.notification.guarantee is Guarantee.AT_MOST_ONCE


def intent_for(delivery: Delivery, request_timeout_ms: int, now: Instant) -> Change:
    """The record of an attempt that is about to be made."""
    deadline = later(now, request_timeout_ms + INTENT_MARGIN_MS)
    return Change(delivery.n, delivery.attempt, Intent(deadline), now)
