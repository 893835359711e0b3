"""Quiet hours: when a user's night ends, by the clock on their wall. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant, to_datetime

_HOUR_MIN: Final = 60
_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")
_DAY: Final = timedelta(days=1)


class Hours(Struct, frozen=True):
    """Hours of each day, by minutes since midnight: from *start* to *end*, over midnight where that is the earlier."""

    start: int
    end: int
    """The first minute that is not among them; the same as *start*: there are none."""

    @classmethod
    def parse(cls, text: str) -> Hours:
        """Read ``22:00-07:00``; a ValueError explains the form."""
        found = _HOURS.fullmatch(text)
        if found is None:
            raise ValueError("is written as `22:00-07:00`")
        start_h, start_min, end_h, end_min = (int(part) for part in found.groups())
        return cls(start_h * _HOUR_MIN + start_min, end_h * _HOUR_MIN + end_min)

    def __str__(self) -> str:
        return f"{clock_of(self.start)}-{clock_of(self.end)}"


def clock_of(minutes: int) -> str:
    """Write minutes since midnight as ``07:05``."""
    return f"{minutes // _HOUR_MIN:02}:{minutes % _HOUR_MIN:02}"


def quiet_until(hours: Hours, zone: ZoneInfo, now: Instant) -> Instant | None:
    """Return when the quiet hours end that it is in now; None where it is in none.

    They begin when the clock shows *start* for the first time of a night, and end when it shows *end* for the last
    time: an hour that comes twice is quiet twice, and one that is left out ends, or begins, when it would.
    """
    return _quiet_until(hours, zone, now // MINUTE_MS)


@lru_cache(maxsize=8_192)
def _quiet_until(hours: Hours, zone: ZoneInfo, minute: int) -> Instant | None:
    """Find the end in a minute, and remember it: many users share hours and zone."""
    now = Instant(minute * MINUTE_MS)
    today = to_datetime(now).astimezone(zone).date()
    nights = (_night(hours, zone, day) for day in (today - _DAY, today))
    return next((until for since, until in nights if since <= now < until), None)


def _night(hours: Hours, zone: ZoneInfo, day: date) -> tuple[Instant, Instant]:
    """Return the beginning and the end of the quiet hours that begin on *day*; the same where there are none."""
    since = instant_of(day, hours.start, zone)
    if hours.start == hours.end:
        return since, since
    return since, instant_of(day if hours.start < hours.end else day + _DAY, hours.end, zone, last=True)


def instant_of(day: date, minutes: int, zone: ZoneInfo, *, last: bool = False) -> Instant:
    """Return when a clock in *zone* shows a time of a day for the first time, or the *last*.

    A time that is left out is the moment at which the clock is put forward over it.
    """
    wall = datetime.combine(day, time(minutes // _HOUR_MIN, minutes % _HOUR_MIN), zone)
    first, second = _instant(wall.replace(fold=0)), _instant(wall.replace(fold=1))
    if first <= second:
        return second if last else first
    return _put_forward(zone, second, first)


def _put_forward(zone: ZoneInfo, before: Instant, after: Instant) -> Instant:
    """Find the moment, to the second, between *before* and *after* at which the clock is put forward."""
    offset = to_datetime(before).astimezone(zone).utcoffset()
    while after - before > SECOND_MS:
        middle = Instant((before + after) // 2 // SECOND_MS * SECOND_MS)
        if to_datetime(middle).astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


def _instant(wall: datetime) -> Instant:
    return Instant(round(wall.timestamp() * SECOND_MS))
