"""The best time: the next hour in which somebody reads most, within a window of the day."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.shows import shows
from waypost.domain.best_hour import BasedOn, Hours
from waypost.domain.best_time import LATEST_MS, Habits, best_time, send_at_faults
from waypost.domain.time import from_datetime, isoformat

USER, APP = BasedOn.USER, BasedOn.APP


def reads(**opened: int) -> Hours:
    """Of ten that were sent in each of these hours in UTC, such as ``h9``, so many were read."""
    asked = {int(name[1:]): n for name, n in opened.items()}
    return Hours(tuple(10 * (hour in asked) for hour in range(24)), tuple(asked.get(hour, 0) for hour in range(24)))


EVENING = [(USER, reads(h7=6, h19=9)), (APP, reads(h12=9))]
NOTHING: Habits = [(USER, Hours()), (APP, Hours())]


@shows("S3-120")
@pytest.mark.parametrize(
    ("send_at", "habits", "zone", "now", "expected", "based_on"),
    [
        ("best", EVENING, "UTC", "2027-06-01T08:00", "2027-06-01T19:00", USER),
        ("best", EVENING, "UTC", "2027-06-01T19:20", "2027-06-01T19:20", USER),
        ("best", EVENING, "UTC", "2027-06-01T20:00", "2027-06-02T19:00", USER),
        ("best 06:00-12:00", EVENING, "UTC", "2027-06-01T08:00", "2027-06-02T07:00", USER),
        ("best 07:30-12:00", EVENING, "UTC", "2027-06-01T07:10", "2027-06-01T07:30", USER),
        ("best 11:00-15:00", EVENING, "UTC", "2027-06-01T08:00", "2027-06-01T12:00", APP),
        ("best 18:00-20:00", EVENING, "Europe/Zurich", "2027-06-01T08:00", "2027-06-01T16:00", None),
        ("best 20:00-22:00", EVENING, "Europe/Zurich", "2027-06-01T08:00", "2027-06-01T19:00", USER),
        ("best 22:00-04:00", EVENING, "Asia/Tokyo", "2027-06-01T08:00", "2027-06-01T13:00", None),
        ("best", NOTHING, "UTC", "2027-06-01T03:00", "2027-06-01T03:00", None),
        ("best 09:00-21:00", NOTHING, "UTC", "2027-06-01T10:00", "2027-06-01T10:00", None),
        ("best 09:00-21:00", NOTHING, "UTC", "2027-06-01T21:00", "2027-06-02T09:00", None),
        ("best 22:00-07:00", NOTHING, "UTC", "2027-06-01T03:00", "2027-06-01T03:00", None),
        ("best 02:30-03:00", NOTHING, "Europe/Zurich", "2027-03-27T12:00", "2027-03-28T01:00", None),
    ],
)
def test_it_is_the_next_hour_in_which_most_is_read_within_the_window(
    send_at: str, habits: Habits, zone: str, now: str, expected: str, based_on: BasedOn | None
) -> None:
    start = from_datetime(datetime.fromisoformat(f"{now}Z"))
    found = best_time(send_at, habits, zone, start)
    assert isoformat(found.at) == f"{expected}:00.000Z"
    assert (found.hour and found.hour.based_on) == based_on
    assert found.at - start < LATEST_MS


def test_a_window_ends_at_another_time_than_it_begins() -> None:
    assert [fault.path for fault in send_at_faults("best 09:00-09:00")] == ["send_at"]
    assert send_at_faults("best 21:00-09:00") == send_at_faults("best") == []
