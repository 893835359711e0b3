"""Waits: the conditions that a target waits for before it is sent. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from waypost.domain.status import DELIVERY_TRANSITIONS, DeliveryStatus
from waypost.domain.time import SECOND_MS, Instant

CONFIRMED_ELSEWHERE: Final = "confirmed_elsewhere"
"""The reason of a target that is not sent because the one before it was confirmed."""

_RANK: Final = (DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED)


class WaitsUntil(Struct, frozen=True, tag=True):
    """A target that is not sent before *at*."""

    at: Instant


class WaitsFor(Struct, frozen=True, tag=True):
    """A target that is sent *seconds* after target *sibling* was settled, unless that one has reached *status* by then.

    At once where the sibling can never reach it (failed, expired, suppressed), and never where it was cancelled.
    Only a target with a lower number can be waited for, so that no two wait for each other.
    """

    sibling: int
    seconds: int
    status: DeliveryStatus = DeliveryStatus.DELIVERED


Wait = WaitsUntil | WaitsFor


def is_needless(wait: Wait | None, sibling: DeliveryStatus | None) -> bool:
    """Tell whether a target that waits for its *sibling* is not to be sent any more."""
    if not isinstance(wait, WaitsFor) or sibling is None:
        return False
    return sibling is DeliveryStatus.CANCELLED or sibling in _at_least(wait.status)


def patience_ms(wait: WaitsFor, sibling: DeliveryStatus | None) -> int:
    """Return how many milliseconds a settled *sibling* (None: there is none) still has to reach the awaited status."""
    can_reach = sibling is not None and not _at_least(wait.status).isdisjoint(DELIVERY_TRANSITIONS[sibling])
    return wait.seconds * SECOND_MS if can_reach else 0


def _at_least(status: DeliveryStatus) -> frozenset[DeliveryStatus]:
    return frozenset(_RANK[_RANK.index(status) :])
