"""Quiet hours by the clock on the wall, in every zone whose clocks are changed in the years to come."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tests.shows import shows
from waypost.domain.quiet_hours import Hours, quiet_until
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, Instant, from_datetime, later, to_datetime

FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
NIGHT = Hours.parse("22:00-07:00")


def at(zone: str, wall: str, fold: int = 0) -> Instant:
    """When a clock in *zone* shows *wall*."""
    return from_datetime(datetime.fromisoformat(wall).replace(tzinfo=ZoneInfo(zone), fold=fold))


@shows("S3-112")
@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-03-10T21:59:59", None),
        ("2026-03-10T22:00:00", "2026-03-11T07:00:00"),
        ("2026-03-11T00:00:00", "2026-03-11T07:00:00"),
        ("2026-03-11T06:59:59", "2026-03-11T07:00:00"),
        ("2026-03-11T07:00:00", None),
    ],
)
def test_a_night_goes_over_midnight(now: str, until: str | None) -> None:
    zone = "Europe/Zurich"
    expected = None if until is None else at(zone, until)
    assert quiet_until(NIGHT, ZoneInfo(zone), at(zone, now)) == expected


@pytest.mark.parametrize(
    ("hours", "now", "until"),
    [
        ("12:00-13:00", "2026-03-10T12:30:00", "2026-03-10T13:00:00"),
        ("12:00-13:00", "2026-03-10T13:00:00", None),
        ("12:00-12:00", "2026-03-10T12:00:00", None),
        ("00:00-23:59", "2026-03-10T12:00:00", "2026-03-10T23:59:00"),
        ("07:00-06:59", "2026-03-10T03:00:00", "2026-03-10T06:59:00"),
    ],
)
def test_hours_of_a_day(hours: str, now: str, until: str | None) -> None:
    zone = "Asia/Kathmandu"
    expected = None if until is None else at(zone, until)
    assert quiet_until(Hours.parse(hours), ZoneInfo(zone), at(zone, now)) == expected


@pytest.mark.parametrize("text", ["22-07", "24:00-07:00", "22:00-7:00", "22:60-07:00", "22:00–07:00", ""])
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="22:00-07:00"):
        Hours.parse(text)


def changes() -> Iterator[tuple[ZoneInfo, Instant, int]]:
    """Every change of a clock from 2026 to 2030: its zone, its moment, and by how many minutes it is put forward."""
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        for moment in _moments(zone):
            before, after = (_offset(zone, Instant(moment + each)) for each in (-1, 0))
            yield zone, moment, (after - before) // MINUTE_MS


def _moments(zone: ZoneInfo) -> Iterator[Instant]:
    """The moments at which the offset of *zone* changes: days that differ are halved."""
    day, end = from_datetime(FIRST), from_datetime(LAST)
    step = 5 * DAY_MS
    while day < end:
        low, high = day, Instant(day + step)
        if _offset(zone, low) != _offset(zone, high):
            offset = _offset(zone, low)
            while high - low > MINUTE_MS:
                middle = Instant((low + high) // 2 // MINUTE_MS * MINUTE_MS)
                low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
            yield high
        day = Instant(day + step)


def _offset(zone: ZoneInfo, moment: Instant) -> int:
    offset = to_datetime(moment).astimezone(zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds() * 1_000)


@cache
def _changes() -> tuple[tuple[ZoneInfo, Instant, int], ...]:
    return tuple(changes())


def _wall(zone: ZoneInfo, moment: Instant) -> str:
    return f"{to_datetime(moment).astimezone(zone):%H:%M}"


def test_clocks_are_changed_in_many_zones() -> None:
    """The data base of this machine is whole: what follows looks at them."""
    zones = {zone.key for zone, _, _ in _changes()}
    assert {"Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "America/Santiago"} <= zones
    assert {minutes for _, _, minutes in _changes()} >= {60, -60, 30, -30}


@shows("S3-112")
def test_a_night_in_which_clocks_are_changed_ends_when_the_clock_says_so() -> None:
    """Forward or back, it ends at 07:00 and not an hour before or after: the night is as much shorter or longer."""
    for zone, moment, forward in _changes():
        local = to_datetime(moment).astimezone(zone)
        evening = local.replace(hour=22, minute=0) - timedelta(days=1 if local.hour < 22 else 0)
        now = from_datetime(evening.astimezone(UTC))
        until = quiet_until(NIGHT, zone, now)
        assert until is not None, (zone, moment)
        assert _wall(zone, until) == "07:00", (zone, moment)
        by = forward * MINUTE_MS if now <= moment <= until else 0
        assert until - now == 9 * HOUR_MS - by, (zone, moment)
        assert quiet_until(NIGHT, zone, Instant(until - 1)) == until
        assert quiet_until(NIGHT, zone, until) is None


@shows("S3-112")
def test_hours_that_end_in_an_hour_that_is_left_out_or_comes_twice() -> None:
    """Left out, they end at the change; twice, they end the second time, and it is quiet all along."""
    for zone, moment, forward in _changes():
        middle = _wall(zone, later(moment, -1)) if forward < 0 else _wall(zone, moment)
        shown = datetime.strptime(middle, "%H:%M").replace(tzinfo=UTC)
        inside = shown - timedelta(minutes=abs(forward) // 2) + timedelta(minutes=1 if forward < 0 else 0)
        begins = shown - timedelta(hours=5)
        hours = Hours.parse(f"{begins:%H:%M}-{inside:%H:%M}")
        before = Instant(moment - 2 * HOUR_MS)
        until = quiet_until(hours, zone, before)
        assert until is not None, (zone, moment)
        if forward > 0:
            assert until == moment, (zone, moment, hours)
        else:
            assert _wall(zone, until) == f"{inside:%H:%M}", (zone, moment)
            assert until >= moment, "the second time"
            first = Instant(until + forward * MINUTE_MS)
            assert quiet_until(hours, zone, first) == until, (zone, moment)
        assert quiet_until(hours, zone, until) is None, (zone, moment)


@shows("S3-112")
def test_hours_that_begin_in_an_hour_that_is_left_out_or_comes_twice() -> None:
    """Left out, they begin at the change; twice, the first time, and do not end in between."""
    for zone, moment, forward in _changes():
        shown_at = _wall(zone, moment) if forward > 0 else _wall(zone, later(moment, -1))
        shown = datetime.strptime(shown_at, "%H:%M").replace(tzinfo=UTC)
        inside = shown - timedelta(minutes=abs(forward) // 2) + timedelta(minutes=1 if forward < 0 else 0)
        ends = shown + timedelta(hours=5)
        hours = Hours.parse(f"{inside:%H:%M}-{ends:%H:%M}")
        start = moment if forward > 0 else Instant(moment + forward // 2 * MINUTE_MS)
        until = quiet_until(hours, zone, start)
        assert until is not None, (zone, moment, hours)
        assert _wall(zone, until) == f"{ends:%H:%M}", (zone, moment)
        assert quiet_until(hours, zone, later(start, -MINUTE_MS)) is None, (zone, moment)
        assert quiet_until(hours, zone, later(moment, MINUTE_MS)) == until, (zone, moment)
