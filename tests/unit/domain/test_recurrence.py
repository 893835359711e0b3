"""Recurrence: the local times of a rule of RFC 5545, with its exceptions."""

from __future__ import annotations

from itertools import islice

import pytest

from waypost.domain.local_time import format_local, parse_local
from waypost.domain.recurrence import BadRule, Recurrence, following, has_times, is_one, normalised, without

STARTS = "2026-12-01T09:00"  # a Tuesday


def times(recurrence: Recurrence, n: int = 4, after: str | None = None) -> list[str]:
    """The next *n* local times."""
    found = following(recurrence, None if after is None else parse_local(after))
    return [format_local(each) for each in islice(found, n)]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("FREQ=DAILY;INTERVAL=2", ["2026-12-01T09:00", "2026-12-03T09:00", "2026-12-05T09:00"]),
        ("FREQ=WEEKLY;BYDAY=MO,FR;COUNT=3", ["2026-12-04T09:00", "2026-12-07T09:00", "2026-12-11T09:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2026-12-25T09:00", "2027-01-29T09:00", "2027-02-26T09:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=8,20", ["2026-12-31T08:00", "2026-12-31T20:00", "2027-01-31T08:00"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["2026-12-31T09:00", "2027-01-29T09:00", "2027-02-26T09:00"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["2028-02-29T09:00", "2032-02-29T09:00", "2036-02-29T09:00"]),
        ("FREQ=DAILY;UNTIL=20261202", ["2026-12-01T09:00", "2026-12-02T09:00"]),
        ("FREQ=DAILY;UNTIL=20261202T080000Z", ["2026-12-01T09:00", "2026-12-02T09:00"]),
        ("rrule:freq=daily;until=20261202T075959Z", ["2026-12-01T09:00"]),
    ],
)
def test_a_rule_says_local_times(rule: str, said: list[str]) -> None:
    assert times(Recurrence(STARTS, normalised(rule, "Europe/Zurich")), 3) == said


def test_without_a_rule_it_is_once() -> None:
    assert times(Recurrence(STARTS)) == [STARTS]


def test_one_time_is_left_out_or_moved() -> None:
    daily = Recurrence(STARTS, "FREQ=DAILY;COUNT=4")
    left_out = without(daily, parse_local("2026-12-02T09:00"))
    assert times(left_out) == ["2026-12-01T09:00", "2026-12-03T09:00", "2026-12-04T09:00"]
    moved = without(left_out, parse_local("2026-12-03T09:00"), parse_local("2026-12-03T11:30"))
    assert times(moved) == ["2026-12-01T09:00", "2026-12-03T11:30", "2026-12-04T09:00"]
    assert times(moved, after="2026-12-03T11:30") == ["2026-12-04T09:00"]
    back = without(moved, parse_local("2026-12-03T11:30"), parse_local("2026-12-03T09:00"))
    assert times(back) == ["2026-12-01T09:00", "2026-12-03T09:00", "2026-12-04T09:00"]
    assert (is_one(moved, parse_local("2026-12-03T11:30")), is_one(moved, parse_local("2026-12-03T09:00"))) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "weekly",
        "FREQ=SECONDLY",
        "FREQ=HOURLY",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=1,2",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=DAILY;COUNT=3;UNTIL=20261231",
        "FREQ=DAILY;COUNT=10001",
        "FREQ=DAILY;BYMONTHDAY=30;BYMONTH=2",
        "FREQ=WEEKLY;BYDAY=1MO",
        "FREQ=WEEKLY;BYDAY=XX",
        "FREQ=MONTHLY;BYMONTHDAY=0",
        "FREQ=MONTHLY;BYMONTHDAY=32",
        "FREQ=DAILY;UNTIL=20261332",
        "FREQ=DAILY;UNTIL=tomorrow",
        "FREQ=DAILY;WKST=1",
        "FREQ=DAILY;BYSECOND=1",
        "FREQ=DAILY;BYEASTER=1",
        "FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=0,20,40",
    ],
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(BadRule):
        normalised(rule, "UTC")


@pytest.mark.parametrize(
    "rule", ["FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=MONTHLY;BYSETPOS=300", "FREQ=YEARLY;BYDAY=20MO;BYMONTH=2"]
)
def test_a_rule_that_fits_no_day_is_found_out(rule: str) -> None:
    assert not has_times(Recurrence(STARTS, normalised(rule, "UTC")))


def test_a_rule_that_ends_before_it_begins_has_no_times() -> None:
    assert not has_times(Recurrence(STARTS, normalised("FREQ=DAILY;UNTIL=20261130", "UTC")))
    assert has_times(Recurrence(STARTS, normalised("FREQ=YEARLY;BYYEARDAY=366", "UTC")))
