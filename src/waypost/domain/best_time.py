"""The best time: the next hour on the user's clock in which they read most, within a window of the day. Pure.

It is written where a local time is: ``best``, or ``best 09:00-21:00``, in which nothing is sent outside of these hours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct

from waypost.domain.best_hour import HOURS, BasedOn, BestHour, best_hour
from waypost.domain.best_hour import Hours as ReadHours
from waypost.domain.errors import Fault
from waypost.domain.ids import AppId, UserId
from waypost.domain.local_time import LOCAL, ChosenZone, local_faults, zone_named
from waypost.domain.quiet_hours import Hours, instant_of, quiet_until
from waypost.domain.text import FORM
from waypost.domain.time import HOUR_MS, Instant, to_datetime

BEST: Final = "best"
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9]"
SendAt = Annotated[
    str,
    Meta(
        max_length=19,
        pattern=rf"^({LOCAL}|{BEST}( {_CLOCK}-{_CLOCK})?)(?!\n)$",
        examples=["2026-12-01T09:00", "best 09:00-21:00"],
        extra={
            FORM: 'YYYY-MM-DDTHH:MM, such as "2026-12-01T09:00", or `best`, or `best HH:MM-HH:MM`,'
            ' such as "best 09:00-21:00"'
        },
    ),
]
"""A local time, or the best one."""
Habits = Sequence[tuple[BasedOn, ReadHours]]
"""When somebody reads, and people like them; the user's own come first."""
HabitReader = Callable[[AppId, Sequence[UserId]], Awaitable[Mapping[UserId, Habits]]]
"""Reads the habits of each of these users; Unavailable where the store is away."""


class UserClock(Struct, frozen=True):
    """The clock of a user."""

    zone: ChosenZone
    habits: Habits = ()
    """When they read, where that is asked for."""


LATEST_MS: Final = 26 * HOUR_MS
"""The most milliseconds until the best time: a day, on which clocks may be put back."""
_HOUR_MIN: Final = 60
_DAYS: Final = 3


class BestTime(Struct, frozen=True):
    """The best time, and what it follows from."""

    at: Instant
    hour: BestHour | None
    """The hour in which most is read; None where too little is known: it is the first moment of the window, or now."""


def is_best(send_at: str) -> bool:
    """Tell whether *send_at* means the best time."""
    return send_at.startswith(BEST)


def send_at_faults(send_at: str) -> list[Fault]:
    """Say what is wrong with *send_at*; empty where it is a time."""
    if not is_best(send_at):
        return local_faults("send_at", send_at)
    window = _window(send_at)
    if window is not None and window.start == window.end:
        return [Fault("send_at", "the window ends when it begins")]
    return []


def best_time(send_at: str, habits: Habits, zone: str, now: Instant) -> BestTime:
    """Return the next time that *send_at* means, by the clock in *zone*; now where it is that time already."""
    window, place = _window(send_at), zone_named(zone)
    found = best_hour(habits, shift_of(place, now), among=_hours_in(window))
    is_inside = window is None or quiet_until(window, place, now) is not None
    if found is None:
        return BestTime(now if is_inside or window is None else _next(window.start, place, now), None)
    if is_inside and to_datetime(now).astimezone(place).hour == found.hour:
        return BestTime(now, found)
    begins_in_it = window is not None and window.start // _HOUR_MIN == found.hour
    start = window.start if window is not None and begins_in_it else found.hour * _HOUR_MIN
    return BestTime(_next(start, place, now), found)


def shift_of(zone: ZoneInfo, now: Instant) -> int:
    """Return the zone's offset from UTC in whole hours."""
    offset = to_datetime(now).astimezone(zone).utcoffset() or timedelta()
    return round(offset.total_seconds() * 1000 / HOUR_MS) % HOURS


def _window(send_at: str) -> Hours | None:
    """Read the window; None is the whole day."""
    _, _, window = send_at.partition(" ")
    return Hours.parse(window) if window else None


def _hours_in(window: Hours | None) -> Collection[int]:
    """List the hours of the day that lie in *window*, also in part."""
    if window is None:
        return range(HOURS)
    end = window.end if window.end > window.start else window.end + HOURS * _HOUR_MIN
    return {minute // _HOUR_MIN % HOURS for minute in range(window.start, end)}


def _next(minutes: int, zone: ZoneInfo, now: Instant) -> Instant:
    """Return when a clock in *zone* shows a time of the day next."""
    return next(at for day in _days(zone, now) if (at := instant_of(day, minutes, zone)) > now)


def _days(zone: ZoneInfo, now: Instant) -> Iterator[date]:
    today = to_datetime(now).astimezone(zone).date()
    return (today + timedelta(days=n) for n in range(_DAYS))
