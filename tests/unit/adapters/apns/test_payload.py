"""What APNs is told: headers and JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.shows import shows
from tests.unit.adapters.deliveries import NOW, TEXT_ID, notification
from waypost.channels.apns.payload import faults, fitted_collapse_id, render
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.push.payload import named
from waypost.domain.channel import APNS, Channel
from waypost.domain.content import Action, Content, Kind, Urgency
from waypost.domain.message import message_of, rendered_for
from waypost.domain.notification import Notification
from waypost.domain.time import HOUR_MS, later

SETTINGS = ApnsSettings(key_file="k", key_id="ABCDE12345", team_id="FGHIJ67890", topic="com.example.demo")
FULL = Content(
    title="Title",
    subtitle="Subtitle",
    body="Body",
    data={"order": 7, "nested": {"a": [1]}},
    image="https://img.example.com/1.png",
    link="app://orders/7",
    actions=(Action("open", "Open"),),
    sound="chime.caf",
    badge=5,
    category="ORDER",
    thread="orders",
)


def headers(what: Notification) -> dict[str, str]:
    return dict(render(rendered_for(message_of(what), APNS), SETTINGS, NOW).headers)


def body(what: Notification) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(
        named(render(rendered_for(message_of(what), APNS), SETTINGS, NOW).body, what.id)
    )
    return decoded


@shows("S1-48", "S3-53")
@pytest.mark.parametrize(
    ("urgency", "priority"),
    [(Urgency.CRITICAL, "10"), (Urgency.HIGH, "10"), (Urgency.NORMAL, "10"), (Urgency.LOW, "5")],
)
def test_urgency_is_the_priority_of_a_visible_notification(urgency: Urgency, priority: str) -> None:
    assert headers(notification(urgency=urgency)) == {
        "apns-topic": "com.example.demo",
        "apns-push-type": "alert",
        "apns-priority": priority,
        "apns-expiration": str((NOW + HOUR_MS) // 1000),
    }


@shows("S1-50")
@pytest.mark.parametrize("urgency", list(Urgency))
def test_a_silent_notification_is_background_with_priority_5_whatever_its_urgency(urgency: Urgency) -> None:
    silent = notification(Content(data={"sync": True}), kind=Kind.SILENT, urgency=urgency)
    assert headers(silent)["apns-push-type"] == "background"
    assert headers(silent)["apns-priority"] == "5"
    assert body(silent) == {"sync": True, "aps": {"content-available": 1}, "waypost_id": TEXT_ID}


def test_every_field_has_its_place_and_data_stands_beside_aps() -> None:
    assert body(notification(FULL)) == {
        "order": 7,
        "nested": {"a": [1]},
        "waypost_id": TEXT_ID,
        "waypost_image": "https://img.example.com/1.png",
        "waypost_link": "app://orders/7",
        "waypost_actions": [{"id": "open", "title": "Open"}],
        "aps": {
            "alert": {"title": "Title", "subtitle": "Subtitle", "body": "Body"},
            "sound": "chime.caf",
            "badge": 5,
            "category": "ORDER",
            "thread-id": "orders",
            "mutable-content": 1,
        },
    }


def test_overrides_are_laid_over_key_by_key() -> None:
    aps = {"sound": {"critical": 1, "name": "x", "volume": 1.0}, "content-available": 1}
    override = {"aps": aps, "extra": [1]}
    got = body(notification(Content(title="T", sound="a", overrides={Channel("apns"): override})))
    assert got == {"aps": {"alert": {"title": "T"}, **aps}, "extra": [1], "waypost_id": TEXT_ID}


@shows("S1-50")
def test_nothing_visible_leaves_with_a_silent_notification_and_our_id_stays() -> None:
    override = {"aps": {"alert": "x", "badge": 1, "sound": "y", "thread-id": "t"}, "waypost_id": "other"}
    silent = notification(Content(title="T", overrides={Channel("apns"): override}), kind=Kind.SILENT)
    assert body(silent) == {"aps": {"content-available": 1, "thread-id": "t"}, "waypost_id": TEXT_ID}


def test_a_ttl_of_zero_is_one_attempt_now() -> None:
    assert headers(notification(ttl_ms=0))["apns-expiration"] == "0"


def test_the_expiration_is_a_point_in_time_so_a_later_attempt_says_the_same() -> None:
    what = notification()
    assert (
        dict(render(rendered_for(message_of(what), APNS), SETTINGS, later(NOW, HOUR_MS // 2)).headers)[
            "apns-expiration"
        ]
        == headers(what)["apns-expiration"]
    )


@pytest.mark.parametrize(
    ("collapse_key", "fits"),
    [("score-7", True), ("x" * 64, True), ("x" * 65, False), ("ü", False), ("a\nb", False), (" a", False)],
)
def test_a_collapse_key_goes_as_it_is_or_as_its_hash(collapse_key: str, *, fits: bool) -> None:
    fitted = fitted_collapse_id(collapse_key)
    assert (fitted == collapse_key) is fits
    assert len(fitted.encode()) <= 64
    assert headers(notification(Content(title="T", collapse_key=collapse_key)))["apns-collapse-id"] == fitted


def test_faults_name_what_apple_would_refuse() -> None:
    content = Content(data={"aps": 1, "waypost_id": 2}, overrides={Channel("apns"): {"aps": {"alert": "x"}}})
    assert [fault.path for fault in faults(content, Kind.SILENT)] == [
        "data.aps",
        "data.waypost_id",
        "overrides.apns.aps.alert",
    ]
    assert [fault.path for fault in faults(content, Kind.VISIBLE)] == ["data.aps", "data.waypost_id"]
    assert [fault.path for fault in faults(Content(overrides={Channel("apns"): {"aps": 1}}), Kind.VISIBLE)] == [
        "overrides.apns.aps"
    ]
    assert faults(FULL, Kind.VISIBLE) == []
