"""The best hour: the hour of the day in which somebody reads most of what is sent. Pure.

A user of whom little is known is taken for one of a segment, and that for all users of the app. Hours are compared by
what their read rate is at least, so that one read of one sent is not better than nine of ten: by the lower end of the
Wilson score interval (E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import sqrt
from typing import Final

from msgspec import Struct

from waypost.domain.time import DAY_MS
from waypost.domain.words import Words

OPENED_LEAST: Final = 5
"""The notifications that must have been read before an hour is named."""
HABIT_MS: Final = 90 * DAY_MS
"""Milliseconds that count as somebody's habit."""
_Z: Final = 1.96
"""Standard deviations on either side: 95 of 100 true rates lie within."""
HOURS: Final = 24


class Hours(Struct, frozen=True):
    """The notifications by hour of the day in which they were sent."""

    sent: tuple[int, ...] = (0,) * HOURS
    opened: tuple[int, ...] = (0,) * HOURS


def summed(each: Sequence[Hours]) -> Hours:
    """Add up the hours of several users."""
    return Hours(
        tuple(map(sum, zip(*(hours.sent for hours in each), strict=True))),
        tuple(map(sum, zip(*(hours.opened for hours in each), strict=True))),
    )


class BasedOn(Words):
    """The people whose habits an hour follows from."""

    USER = "user"
    SEGMENT = "segment"
    APP = "app"


class BestHour(Struct, frozen=True):
    """The best hour of a day, and whose habits say so."""

    hour: int
    """The hour, in the zone of the question."""
    based_on: BasedOn
    rate: float
    """The part of what was sent in this hour that was read."""


def best_hour(
    known: Sequence[tuple[BasedOn, Hours]], shift: int = 0, among: Collection[int] = range(HOURS)
) -> BestHour | None:
    """Return the best hour *among* these by the first of *known* that tells enough; None where none does.

    It is said in a zone *shift* hours later than UTC. Of equal hours it is the one with more sent, then the earlier.
    """
    for based_on, hours in known:
        asked = [(hour - shift) % HOURS for hour in among]
        if sum(hours.opened[hour] for hour in asked) < OPENED_LEAST:
            continue
        found = max(asked, key=lambda hour: (_at_least(hours, hour), hours.sent[hour], -((hour + shift) % HOURS)))
        return BestHour((found + shift) % HOURS, based_on, _rate(hours, found))
    return None


def _at_least(hours: Hours, hour: int) -> float:
    """Return the lower end of the Wilson score interval of an hour's read rate."""
    n, rate = hours.sent[hour], _rate(hours, hour)
    if n == 0:
        return 0.0
    middle = rate + _Z**2 / (2 * n)
    spread = _Z * sqrt(rate * (1 - rate) / n + (_Z / (2 * n)) ** 2)
    return (middle - spread) / (1 + _Z**2 / n)


def _rate(hours: Hours, hour: int) -> float:
    """Return an hour's read rate: what was read of what was sent in it."""
    return min(1.0, hours.opened[hour] / hours.sent[hour]) if hours.sent[hour] else 0.0
