"""Hours and days of every time zone are whole quarters of an hour, also where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from waypost.domain.buckets import Bucket, size_of, spans_of, start_of
from waypost.domain.time import Instant, from_datetime, to_datetime
from waypost.domain.tracked import SLOT_MS

SINCE, UNTIL = (from_datetime(datetime(2026, 3, day, tzinfo=UTC)) for day in (27, 31))


def each_kind() -> list[ZoneInfo]:
    """A zone of each pair of offsets before and after a week-end on which many zones change their clocks."""
    zones = [ZoneInfo(name) for name in sorted(available_timezones() - {"localtime"})]
    ends = to_datetime(SINCE), to_datetime(UNTIL)
    return list({tuple(at.astimezone(zone).utcoffset() for at in ends): zone for zone in zones}.values())


def starts(zone: ZoneInfo, bucket: Bucket, since: Instant, until: Instant) -> dict[int, Instant]:
    """When the bucket of each slot begins."""
    return {
        slot: start_of(zone, bucket, (slot + span.shift) // size_of(bucket), span.shift)
        for span in spans_of(zone, bucket, since, until)
        for slot in range(span.since, span.until)
    }


def test_every_quarter_of_an_hour_is_in_the_day_that_calendars_of_its_zone_show() -> None:
    kinds = each_kind()
    assert len(kinds) > 30
    for zone in kinds:
        for slot, start in starts(zone, Bucket.DAY, SINCE, UNTIL).items():
            shown, begun = (to_datetime(Instant(at)).astimezone(zone) for at in (slot * SLOT_MS, start))
            assert shown.date() == begun.date(), (zone.key, shown)


@pytest.mark.parametrize(
    ("name", "day", "hours"),
    [
        ("Europe/Zurich", (2026, 3, 29), 23),
        ("Europe/Zurich", (2026, 10, 25), 25),
        ("Australia/Lord_Howe", (2026, 4, 5), 24.5),
        ("Asia/Kathmandu", (2026, 3, 29), 24),
    ],
)
def test_a_day_on_which_clocks_change_is_one_day(name: str, day: tuple[int, int, int], hours: float) -> None:
    zone = ZoneInfo(name)
    begin = datetime(*day, tzinfo=zone)
    since, until = from_datetime(begin), from_datetime(begin + timedelta(days=1))  # a calendar's day: of the wall clock
    assert until - since == hours * 3_600_000
    assert set(starts(zone, Bucket.DAY, since, until).values()) == {since}
    of_hours = starts(zone, Bucket.HOUR, since, until)
    assert len(set(of_hours.values())) == -(-hours // 1)
    assert all(0 <= slot * SLOT_MS - start < 3_600_000 for slot, start in of_hours.items())


def test_hours_of_a_zone_with_three_quarters_begin_with_its_clock() -> None:
    zone = ZoneInfo("Asia/Kathmandu")
    for start in starts(zone, Bucket.HOUR, SINCE, Instant(SINCE + 7_200_000)).values():
        assert to_datetime(start).astimezone(zone).minute == 0
