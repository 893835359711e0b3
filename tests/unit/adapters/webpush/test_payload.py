"""What a web subscription is told: headers and JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.adapters.deliveries import NOW, TEXT_ID, notification
from waypost.channels.push.encryption import PLAINTEXT_LIMIT_BYTES
from waypost.channels.push.message import fitted_topic, message_faults
from waypost.channels.push.payload import named
from waypost.channels.webpush.families import Family
from waypost.channels.webpush.payload import render
from waypost.channels.webpush.sender import headers_for
from waypost.channels.webpush.settings import CHANNEL
from waypost.domain.channel import Channel
from waypost.domain.content import Action, Content, Kind, Urgency
from waypost.domain.message import message_of, rendered_for
from waypost.domain.notification import Notification
from waypost.domain.time import HOUR_MS, later


def headers(what: Notification) -> dict[str, str]:
    rendering = render(rendered_for(message_of(what), CHANNEL), NOW)
    return dict(headers_for(Family.ANY, rendering))


def document(what: Notification) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(
        named(render(rendered_for(message_of(what), CHANNEL), NOW).plaintext, what.id)
    )
    return decoded


FULL = Content(
    title="Title",
    subtitle="Subtitle",
    body="Body",
    data={"order": 7},
    image="https://img.example.com/1.png",
    icon="https://img.example.com/i.png",
    link="https://example.com/orders/7",
    actions=(Action("open", "Open", link="https://example.com/o", icon="https://img.example.com/a.png"),),
    sound="chime",
    badge=2,
    category="ORDER",
    thread="orders",
    collapse_key="order 7",
    overrides={Channel("webpush"): {"requireInteraction": True}},
)


def test_a_service_worker_finds_everything_to_show() -> None:
    assert document(notification(FULL)) == {
        "waypost_id": TEXT_ID,
        "kind": "visible",
        "title": "Title",
        "subtitle": "Subtitle",
        "body": "Body",
        "data": {"order": 7},
        "image": "https://img.example.com/1.png",
        "icon": "https://img.example.com/i.png",
        "link": "https://example.com/orders/7",
        "actions": [
            {
                "action": "open",
                "title": "Open",
                "icon": "https://img.example.com/a.png",
                "link": "https://example.com/o",
            }
        ],
        "sound": "chime",
        "badge": 2,
        "category": "ORDER",
        "thread": "orders",
        "tag": "order 7",
        "requireInteraction": True,
    }


def test_a_silent_notification_has_data_and_nothing_to_show() -> None:
    silent = notification(Content(title="T", data={"sync": 1}), kind=Kind.SILENT)
    assert document(silent) == {"waypost_id": TEXT_ID, "kind": "silent", "data": {"sync": 1}}


@pytest.mark.parametrize(
    ("kind", "urgency", "word"),
    [
        (Kind.VISIBLE, Urgency.CRITICAL, "high"),
        (Kind.VISIBLE, Urgency.HIGH, "high"),
        (Kind.VISIBLE, Urgency.NORMAL, "normal"),
        (Kind.VISIBLE, Urgency.LOW, "low"),
        (Kind.SILENT, Urgency.CRITICAL, "high"),
        (Kind.SILENT, Urgency.HIGH, "normal"),
        (Kind.SILENT, Urgency.NORMAL, "low"),
        (Kind.SILENT, Urgency.LOW, "very-low"),
    ],
)
def test_urgency(kind: Kind, urgency: Urgency, word: str) -> None:
    assert headers(notification(kind=kind, urgency=urgency)) == {
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "ttl": "3600",
        "urgency": word,
    }


def test_the_ttl_is_what_remains() -> None:
    assert render(rendered_for(message_of(notification()), CHANNEL), later(NOW, HOUR_MS - 1_500)).ttl_s == 1
    assert headers(notification(ttl_ms=0))["ttl"] == "0"


@pytest.mark.parametrize(
    ("collapse_key", "fits"), [("order7", True), ("x" * 32, True), ("x" * 33, False), ("a-b", False), ("ü", False)]
)
def test_a_collapse_key_goes_as_it_is_or_as_its_hash(collapse_key: str, *, fits: bool) -> None:
    topic = fitted_topic(collapse_key)
    assert (topic == collapse_key) is fits
    assert topic.isalnum()
    assert len(topic) <= 32
    assert headers(notification(Content(title="T", collapse_key=collapse_key)))["topic"] == topic


def test_the_text_is_shortened_to_the_last_byte_where_the_app_says_so() -> None:
    """The body first, in whole characters; data never."""
    content = Content(title="T" * 100, body="é👩‍👩‍👧" * 1_000, data={"order": 7})
    refused = render(rendered_for(message_of(notification(content)), CHANNEL), NOW)
    assert len(refused.plaintext) > PLAINTEXT_LIMIT_BYTES
    for declarative in (False, True):
        shown = msgspec.structs.replace(content, link="https://example.com/")
        trimmed = render(
            rendered_for(message_of(notification(shown)), CHANNEL), NOW, declarative=declarative, fit="trim"
        ).plaintext
        assert PLAINTEXT_LIMIT_BYTES - 30 < len(trimmed) <= PLAINTEXT_LIMIT_BYTES
        assert "é👩‍👩‍👧…".encode() in trimmed or "👧é…".encode() in trimmed
        assert b'"order":7' in trimmed


def test_data_is_never_shortened() -> None:
    content = Content(title="T", body="B", data={"blob": "x" * 4_000})
    assert (
        render(rendered_for(message_of(notification(content)), CHANNEL), NOW, fit="trim").plaintext
        == render(rendered_for(message_of(notification(content)), CHANNEL), NOW).plaintext
    )


def test_overrides_cannot_take_our_id() -> None:
    content = Content(title="T", overrides={Channel("webpush"): {"waypost_id": "other", "body": "B"}})
    assert document(notification(content)) == {"waypost_id": TEXT_ID, "kind": "visible", "title": "T", "body": "B"}
    assert [fault.path for fault in message_faults(content, Kind.SILENT, Channel("webpush"))] == [
        "overrides.webpush.waypost_id",
        "overrides.webpush.body",
    ]
    assert message_faults(FULL, Kind.VISIBLE, Channel("webpush")) == []
