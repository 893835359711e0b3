"""Waits: the conditions that a target waits for before it is sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from waypost.domain.status import DELIVERY_TRANSITIONS, DeliveryStatus
from waypost.domain.time import Instant

CONFIRMED_ELSEWHERE: Final = "confirmed_elsewhere"
"""The reason of a target that is not sent because the one before it was confirmed."""

_RANK: Final = (DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED)


class WaitsUntil(Struct, frozen=True, tag=True):
    """A target that is not sent before *at*."""

    at: Instant


class WaitsFor(Struct, frozen=True, tag=True):
    """A target that is sent unless one of its *siblings* reaches *status* in time.

    The time begins when something is first written of a sibling, whether it was taken, or is tried again later, and is
    *seconds* long. It is over at once where none can reach the status any more (failed, expired, suppressed). The
    target is never sent where a sibling was cancelled. Only targets with lower numbers can be waited for, so that no
    two wait for each other.
    """

    siblings: tuple[int, ...]
    seconds: int
    status: DeliveryStatus = DeliveryStatus.DELIVERED


Wait = WaitsUntil | WaitsFor


def is_needless(wait: WaitsFor, siblings: Iterable[DeliveryStatus]) -> bool:
    """Tell whether a target that waits for *siblings*, which stand so, is not to be sent any more."""
    enough = _at_least(wait.status) | {DeliveryStatus.CANCELLED}
    return any(each in enough for each in siblings)


def can_reach(wait: WaitsFor, sibling: DeliveryStatus) -> bool:
    """Tell whether a settled *sibling* can still reach the awaited status."""
    return not _at_least(wait.status).isdisjoint(DELIVERY_TRANSITIONS[sibling])


def _at_least(status: DeliveryStatus) -> frozenset[DeliveryStatus]:
    return frozenset(_RANK[_RANK.index(status) :])
