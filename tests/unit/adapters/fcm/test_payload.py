"""What FCM is told: a message whose data is text."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.shows import shows
from tests.unit.adapters.deliveries import ANDROID_TOKEN, NOW, TEXT_ID, notification
from waypost.channels.fcm.payload import faults, render
from waypost.channels.fcm.settings import CHANNEL
from waypost.domain.channel import Channel
from waypost.domain.content import Action, Content, Kind, Urgency
from waypost.domain.message import message_of, rendered_for
from waypost.domain.notification import Notification
from waypost.domain.time import DAY_MS, HOUR_MS, later


def message(what: Notification, token: str = ANDROID_TOKEN) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(
        render(rendered_for(message_of(what), CHANNEL), NOW).body(token, what.id)
    )
    assert list(body) == ["message"]
    decoded: dict[str, Any] = body["message"]
    assert decoded.pop("token") == token
    return decoded


FULL = Content(
    title="Title",
    subtitle="Subtitle",
    body="Body",
    data={"text": "plain", "number": 7, "yes": True, "none": None, "list": [1, "a"]},
    image="https://img.example.com/1.png",
    icon="ic_order",
    link="app://orders/7",
    actions=(Action("open", "Open"),),
    sound="chime",
    badge=3,
    category="ORDER",
    thread="orders",
    android_channel="orders",
    collapse_key="order-7",
)


def test_every_field_has_its_place_and_data_is_all_text() -> None:
    assert message(notification(FULL, urgency=Urgency.HIGH)) == {
        "notification": {"title": "Title", "body": "Body", "image": "https://img.example.com/1.png"},
        "data": {
            "text": "plain",
            "number": "7",
            "yes": "true",
            "none": "null",
            "list": '[1,"a"]',
            "waypost_id": TEXT_ID,
            "waypost_subtitle": "Subtitle",
            "waypost_link": "app://orders/7",
            "waypost_category": "ORDER",
            "waypost_thread": "orders",
            "waypost_actions": '[{"id":"open","title":"Open"}]',
        },
        "android": {
            "priority": "HIGH",
            "ttl": "3600s",
            "collapse_key": "order-7",
            "notification": {
                "icon": "ic_order",
                "sound": "chime",
                "channel_id": "orders",
                "tag": "order-7",
                "notification_count": 3,
            },
        },
    }


def test_an_icon_that_is_an_address_is_no_android_resource() -> None:
    got = message(notification(Content(title="T", icon="https://img.example.com/i.png")))
    assert "notification" not in got["android"]
    assert got["data"]["waypost_icon"] == "https://img.example.com/i.png"


@pytest.mark.parametrize(
    ("urgency", "priority"),
    [(Urgency.CRITICAL, "HIGH"), (Urgency.HIGH, "HIGH"), (Urgency.NORMAL, "NORMAL"), (Urgency.LOW, "NORMAL")],
)
def test_a_silent_notification_is_data_alone_with_the_priority_of_its_urgency(urgency: Urgency, priority: str) -> None:
    silent = notification(Content(title="T", data={"sync": 1}), kind=Kind.SILENT, urgency=urgency)
    assert message(silent) == {
        "data": {"sync": "1", "waypost_id": TEXT_ID},
        "android": {"priority": priority, "ttl": "3600s"},
    }


def test_a_later_attempt_tells_the_remaining_time() -> None:
    body = render(rendered_for(message_of(notification()), CHANNEL), later(NOW, HOUR_MS - 1_500)).body(
        ANDROID_TOKEN, notification().id
    )
    assert b'"ttl":"1s"' in body


def test_the_time_to_live_is_zero_for_one_attempt_now_and_at_most_four_weeks() -> None:
    assert message(notification(ttl_ms=0))["android"]["ttl"] == "0s"
    assert message(notification(ttl_ms=60 * DAY_MS))["android"]["ttl"] == "2419200s"


def test_overrides_are_laid_over_but_never_name_another_recipient() -> None:
    override = {
        "token": "other",
        "topic": "news",
        "condition": "x",
        "fid": "f",
        "android": {"notification": {"color": "#FF0000"}, "direct_boot_ok": True},
        "data": {"more": 1, "waypost_id": "other"},
        "fcm_options": {"analytics_label": "a"},
    }
    got = message(notification(Content(title="T", overrides={Channel("fcm"): override})))
    assert got == {
        "notification": {"title": "T"},
        "data": {"more": "1", "waypost_id": TEXT_ID},
        "android": {
            "priority": "HIGH",
            "ttl": "3600s",
            "notification": {"color": "#FF0000"},
            "direct_boot_ok": True,
        },
        "fcm_options": {"analytics_label": "a"},
    }


@pytest.mark.parametrize(
    ("urgency", "priority"),
    [(Urgency.CRITICAL, "HIGH"), (Urgency.HIGH, "HIGH"), (Urgency.NORMAL, "HIGH"), (Urgency.LOW, "NORMAL")],
)
def test_what_is_shown_wakes_the_device_unless_its_urgency_is_low(urgency: Urgency, priority: str) -> None:
    assert message(notification(Content(title="T"), urgency=urgency))["android"]["priority"] == priority


@shows("S1-50")
def test_nothing_visible_leaves_with_a_silent_notification() -> None:
    override = {"notification": {"title": "x"}, "android": {"notification": {"title": "x"}}}
    silent = notification(Content(overrides={Channel("fcm"): override}), kind=Kind.SILENT)
    assert message(silent) == {"data": {"waypost_id": TEXT_ID}, "android": {"priority": "NORMAL", "ttl": "3600s"}}


def test_a_token_is_spliced_in_as_json() -> None:
    assert message(notification(), token='quote"back\\slash')["android"]


def test_the_size_is_that_of_keys_and_values() -> None:
    rendering = render(rendered_for(message_of(notification(Content(title="ü", data={"k": "v"}))), CHANNEL), NOW)
    assert rendering.size_bytes == len("title") + 2 + len("k") + 1 + len("waypost_id") + 36


@pytest.mark.parametrize(
    "key", ["from", "message_type", "google", "google.x", "gcm", "gcm.notification.title", "waypost_id"]
)
def test_reserved_data_keys_are_faults(key: str) -> None:
    assert [fault.path for fault in faults(Content(data={key: "x", "fine": "y"}), Kind.VISIBLE)] == [f"data.{key}"]


def test_faults_in_overrides_name_their_path() -> None:
    override = {"token": "x", "data": {"from": "x"}, "android": 7, "notification": {"title": "x"}}
    content = Content(overrides={Channel("fcm"): override})
    assert [fault.path for fault in faults(content, Kind.SILENT)] == [
        "overrides.fcm.token",
        "overrides.fcm.android",
        "overrides.fcm.data.from",
        "overrides.fcm.notification",
    ]
    assert faults(FULL, Kind.VISIBLE) == []
