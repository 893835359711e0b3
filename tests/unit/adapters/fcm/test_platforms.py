"""What FCM is told for iOS and web apps that have Firebase's SDK."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.adapters.deliveries import ANDROID_TOKEN, NOW, TEXT_ID, notification
from waypost.channels.apns.plugin import PLUGIN as APNS_PLUGIN
from waypost.channels.fcm.payload import render
from waypost.channels.fcm.platforms import IOS, WEB
from waypost.channels.fcm.plugin import PLUGIN
from waypost.channels.fcm.settings import CHANNEL
from waypost.channels.webpush.plugin import PLUGIN as WEBPUSH_PLUGIN
from waypost.domain.content import Action, Content, Kind, Urgency
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.message import message_of, rendered_for
from waypost.domain.notification import Notification
from waypost.domain.time import HOUR_MS, SECOND_MS
from waypost.ports.plugin import SenderPlugin

FULL = Content(
    title="Title",
    subtitle="Subtitle",
    body="Body",
    image="https://img.example.com/1.png",
    icon="https://img.example.com/icon.png",
    link="https://example.com/orders/7",
    actions=(Action("open", "Open"),),
    sound="chime",
    badge=3,
    category="ORDER",
    thread="orders",
    collapse_key="order-7",
)
SHOWING = {
    "notification": {"title": "x"},
    "apns": {"payload": {"aps": {"alert": "x", "sound": "x", "badge": 1, "thread-id": "t"}}},
    "webpush": {"notification": {"title": "x"}, "headers": {"Topic": "t"}},
}


def message(platform: Platform, what: Notification) -> dict[str, Any]:
    rendering = render(rendered_for(message_of(what), CHANNEL), NOW, platform=platform)
    decoded: dict[str, Any] = msgspec.json.decode(rendering.body(ANDROID_TOKEN, what.id))["message"]
    return decoded


def test_an_ios_app_gets_what_apple_shows() -> None:
    got = message(IOS, notification(FULL))
    assert got["notification"] == {"title": "Title", "body": "Body", "image": "https://img.example.com/1.png"}
    assert got["apns"] == {
        "headers": {
            "apns-push-type": "alert",
            "apns-priority": "10",
            "apns-expiration": str((NOW + HOUR_MS) // SECOND_MS),
            "apns-collapse-id": "order-7",
        },
        "payload": {
            "aps": {
                "alert": {"title": "Title", "subtitle": "Subtitle", "body": "Body"},
                "badge": 3,
                "sound": "chime",
                "category": "ORDER",
                "thread-id": "orders",
                "mutable-content": 1,
            }
        },
        "fcm_options": {"image": "https://img.example.com/1.png"},
    }
    assert "android" not in got
    assert got["token"] == ANDROID_TOKEN
    assert got["data"]["waypost_id"] == TEXT_ID


@pytest.mark.parametrize(
    ("kind", "urgency", "priority"),
    [
        (Kind.VISIBLE, Urgency.NORMAL, "10"),
        (Kind.VISIBLE, Urgency.LOW, "5"),
        (Kind.SILENT, Urgency.CRITICAL, "5"),
        (Kind.SILENT, Urgency.LOW, "5"),
    ],
)
def test_an_ios_app_gets_apples_priority(kind: Kind, urgency: Urgency, priority: str) -> None:
    content = Content(title="T") if kind is Kind.VISIBLE else Content()
    headers = message(IOS, notification(content, kind=kind, urgency=urgency))["apns"]["headers"]
    assert headers["apns-priority"] == priority


def test_one_attempt_now_is_not_kept_by_apple() -> None:
    assert message(IOS, notification(ttl_ms=0))["apns"]["headers"]["apns-expiration"] == "0"


def test_a_collapse_key_that_does_not_fit_apples_header_is_hashed() -> None:
    got = message(IOS, notification(Content(title="T", collapse_key="k" * 65)))
    assert len(got["apns"]["headers"]["apns-collapse-id"]) == 64
    assert got["apns"]["headers"]["apns-collapse-id"] != "k" * 64


def test_a_silent_notification_wakes_an_ios_app_and_shows_nothing() -> None:
    silent = notification(Content(data={"sync": 1}, overrides={CHANNEL: SHOWING}), kind=Kind.SILENT)
    got = message(IOS, silent)
    assert "notification" not in got
    assert got["apns"]["headers"]["apns-push-type"] == "background"
    assert got["apns"]["payload"] == {"aps": {"content-available": 1, "thread-id": "t"}}


def test_a_web_app_gets_what_browsers_show() -> None:
    got = message(WEB, notification(FULL))
    assert got["notification"]["title"] == "Title"
    assert got["webpush"] == {
        "headers": {"TTL": "3600", "Urgency": "normal", "Topic": got["webpush"]["headers"]["Topic"]},
        "notification": {
            "icon": "https://img.example.com/icon.png",
            "tag": "order-7",
            "actions": [{"action": "open", "title": "Open"}],
        },
        "fcm_options": {"link": "https://example.com/orders/7"},
    }
    assert "android" not in got


def test_a_link_that_fcm_would_refuse_is_left_to_the_app() -> None:
    got = message(WEB, notification(Content(title="T", link="app://orders/7")))
    assert "fcm_options" not in got["webpush"]
    assert got["data"]["waypost_link"] == "app://orders/7"


def test_a_silent_notification_shows_nothing_in_a_browser() -> None:
    silent = notification(Content(data={"sync": 1}, overrides={CHANNEL: SHOWING}), kind=Kind.SILENT)
    assert message(WEB, silent)["webpush"] == {"headers": {"TTL": "3600", "Urgency": "low", "Topic": "t"}}


@pytest.mark.parametrize(("plugin", "platform", "meant"), [(APNS_PLUGIN, "ios", IOS), (WEBPUSH_PLUGIN, "web", WEB)])
def test_a_token_of_firebase_under_another_platform_is_told_its_own(
    plugin: SenderPlugin, platform: str, meant: Platform
) -> None:
    app = AppId("demo")
    said = Registration(app, UserId("u"), DeviceId("d"), Platform(platform), ANDROID_TOKEN)
    assert any(f"the platform {meant}" in fault.why for fault in plugin.registration_check(app, None)(said))
    assert meant in PLUGIN.platforms
    assert PLUGIN.registration_check(app, None)(msgspec.structs.replace(said, platform=meant)) == []
