"""Local times: which instant a clock on the wall means, also when it is put forward or back."""

from __future__ import annotations

import pytest

from waypost.domain.local_time import (
    ChosenZone,
    ZoneSource,
    choose_zone,
    format_local,
    instant_at,
    local_at,
    local_faults,
    parse_local,
)
from waypost.domain.time import isoformat


@pytest.mark.parametrize(
    ("said", "zone", "utc"),
    [
        ("2026-12-01T09:00", "Europe/Zurich", "2026-12-01T08:00:00.000Z"),
        ("2026-12-01T09:00", "America/New_York", "2026-12-01T14:00:00.000Z"),
        ("2027-03-27T09:00", "Europe/Zurich", "2027-03-27T08:00:00.000Z"),
        ("2027-03-28T09:00", "Europe/Zurich", "2027-03-28T07:00:00.000Z"),
        ("2027-03-28T02:30", "Europe/Zurich", "2027-03-28T01:30:00.000Z"),  # skipped: 03:30 on the clock
        ("2026-10-25T02:30", "Europe/Zurich", "2026-10-25T00:30:00.000Z"),  # twice: the first
        ("2027-04-04T01:45", "Australia/Lord_Howe", "2027-04-03T14:45:00.000Z"),  # half an hour, twice: the first
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:45:00.000Z"),  # skipped: 02:45 on the clock
    ],
)
def test_a_local_time_is_one_instant(said: str, zone: str, utc: str) -> None:
    assert isoformat(instant_at(parse_local(said), zone)) == utc


def test_a_skipped_time_is_the_one_that_clocks_show_then() -> None:
    at = instant_at(parse_local("2027-03-28T02:30"), "Europe/Zurich")
    assert format_local(local_at(at, "Europe/Zurich")) == "2027-03-28T03:30"


@pytest.mark.parametrize(
    ("of_user", "of_app", "chosen"),
    [
        ("Asia/Tokyo", "Europe/Zurich", ChosenZone("Asia/Tokyo", ZoneSource.USER)),
        (None, "Europe/Zurich", ChosenZone("Europe/Zurich", ZoneSource.APP)),
        ("Asia/Atlantis", "Europe/Zurich", ChosenZone("Europe/Zurich", ZoneSource.APP, "Asia/Atlantis")),
        ("Asia/Atlantis", None, ChosenZone("UTC", ZoneSource.NOWHERE, "Asia/Atlantis")),
        (None, None, ChosenZone("UTC", ZoneSource.NOWHERE)),
    ],
)
def test_who_has_no_zone_gets_the_apps_and_then_utc(of_user: str | None, of_app: str | None, chosen: object) -> None:
    assert choose_zone(of_user, of_app) == chosen


def test_a_day_that_no_calendar_has_is_named() -> None:
    assert [fault.path for fault in local_faults("send_at", "2026-02-30T09:00")] == ["send_at"]
    assert local_faults("send_at", "2028-02-29T09:00:30") == []
