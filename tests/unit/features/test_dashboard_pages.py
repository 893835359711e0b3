"""What the dashboard's pages make of answers and forms."""

from __future__ import annotations

import itertools
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from waypost.domain.buckets import Bucket
from waypost.domain.campaign import CampaignSubmission
from waypost.domain.errors import InvalidRequest
from waypost.domain.time import HOUR_MS
from waypost.features.dashboard.pages.analytics import filled
from waypost.features.dashboard.pages.campaigns import audience_of, drafted


def row(start: str) -> dict[str, Any]:
    return {"start": start, "sent": 1}


def test_hours_in_which_nothing_was_sent_are_drawn_as_such() -> None:
    rows = filled([row("2026-03-29T00:45:00Z"), row("2026-03-29T03:45:00Z")], Bucket.HOUR, ZoneInfo("Asia/Kathmandu"))
    assert [each["sent"] for each in rows] == [1, 0, 0, 1]
    assert {after["at"] - before["at"] for before, after in itertools.pairwise(rows)} == {HOUR_MS}
    assert rows[1]["read_rate"] is None, "of nothing, there is no part"


def test_days_are_as_long_as_the_clock_of_the_zone_makes_them() -> None:
    """The day on which clocks go forward has 23 hours."""
    rows = filled([row("2026-03-27T23:00:00Z"), row("2026-03-30T22:00:00Z")], Bucket.DAY, ZoneInfo("Europe/Zurich"))
    hours = [(after["at"] - before["at"]) / HOUR_MS for before, after in itertools.pairwise(rows)]
    assert hours == [24, 23, 24]


@pytest.mark.parametrize(
    ("form", "body", "audience"),
    [
        (
            {"audience": "topic", "named": "news", "template": "hello", "holdout": "5"},
            {
                "to": {"topic": "news"},
                "notification": {"template": {"name": "hello"}, "variants": [{"name": "told"}], "holdout": 5},
            },
            "the topic news",
        ),
        (
            {"audience": "segment", "named": "old", "title": " Hi ", "link": " ", "second_title": "Ho"},
            {
                "to": {"segment": "old"},
                "notification": {"title": "Hi", "variants": [{"name": "first"}, {"name": "second", "title": "Ho"}]},
            },
            "the segment old",
        ),
        (
            {"audience": "everyone", "body": "Hi", "gradually": "yes", "rate": "50"},
            {"registry": {}, "notification": {"body": "Hi"}, "rate": 50, "ramp": {}},
            "every user with a device",
        ),
        (
            {"audience": "list", "body": "Hi", "users": "ann\nbob\n"},
            {"recipients": ["ann", "bob"], "notification": {"body": "Hi"}},
            "a list of 2",
        ),
    ],
)
def test_the_form_of_a_campaign_becomes_what_the_api_takes(
    form: dict[str, str], body: dict[str, Any], audience: str
) -> None:
    assert drafted(form) == body
    taken = msgspec.json.decode(msgspec.json.encode(body), type=CampaignSubmission)
    asked = body if "registry" in body else msgspec.to_builtins(taken)
    assert audience_of({"asked": asked, "listed": 2}) == audience


def test_a_number_that_is_none_is_refused_by_the_name_of_its_field() -> None:
    with pytest.raises(InvalidRequest) as refused:
        drafted({"rate": "fast"})
    assert [each.path for each in refused.value.faults] == ["rate"]
