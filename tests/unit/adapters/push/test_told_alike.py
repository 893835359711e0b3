"""What neighbours are told alike is rendered once, by what it says; what is sent has each notification's own id."""

from __future__ import annotations

from copy import deepcopy

import msgspec
import pytest

from tests.unit.adapters.deliveries import NOW, delivery, notification
from waypost.channels.apns.payload import render as apns_render
from waypost.channels.apns.settings import ApnsSettings
from waypost.channels.fcm.payload import render as fcm_render
from waypost.channels.push.payload import ANY_ID, named, told_alike
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.device import Platform
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.message import message_of, rendered_for
from waypost.domain.notification import Notification
from waypost.domain.time import later

SETTINGS = ApnsSettings(key_file="k", key_id="ABCDE12345", team_id="FGHIJ67890", topic="com.example.demo")
IDS = [NotificationId(bytes([n]) * 16) for n in range(3)]
CONTENT = Content(title="Title", body="Body", data={"order": 7, "nested": {"a": [1]}}, collapse_key="k")
VISIBLE = notification(CONTENT)
SILENT = notification(Content(data={"sync": "inbox"}), kind=Kind.SILENT)


@pytest.mark.parametrize("what", [VISIBLE, SILENT])
def test_a_rendering_is_sent_with_the_id_of_each_notification(what: Notification) -> None:
    """In one place, whatever else it says: what stands there is not known to who writes the content."""
    message = message_of(what)
    apple, google = apns_render(message, SETTINGS, NOW), fcm_render(message, NOW)
    for each in IDS:
        text = format_id(each).encode()
        for body in (named(apple.body, each), google.body("token", each)):
            assert (body.count(text), body.count(ANY_ID.encode())) == (1, 0)
        assert len(named(apple.body, each)) == len(apple.body)


def test_recipients_who_are_told_the_same_are_neighbours_by_value() -> None:
    """Two notifications of one job, and one that says the same in other objects."""
    batch = [
        delivery(Platform("ios"), "t", msgspec.structs.replace(VISIBLE, id=each, content=deepcopy(CONTENT)))
        for each in IDS
    ]
    told = [(message, [each.id for each in alike]) for message, alike in told_alike(batch)]
    assert told == [(message_of(VISIBLE), IDS)]


@pytest.mark.parametrize(
    "changes",
    [
        {"content": Content(title="Title", body="Other")},
        {"kind": Kind.SILENT},
        {"urgency": Urgency.HIGH},
        {"expires_at": later(VISIBLE.expires_at, 1_000)},
        {"created_at": later(VISIBLE.created_at, 1_000)},
        {"ttl_ms": 0},
    ],
)
def test_what_is_said_otherwise_is_rendered_for_itself(changes: dict[str, object]) -> None:
    other = msgspec.structs.replace(VISIBLE, **changes)
    batch = [delivery(Platform("ios"), "t", each) for each in (VISIBLE, other, VISIBLE)]
    assert [len(list(alike)) for _, alike in told_alike(batch)] == [1, 1, 1]


def test_each_channel_is_told_its_own_override_and_no_other() -> None:
    """Devices of one channel are told the same; what is said to another channel is no part of it."""
    apns, fcm, webpush = Channel("apns"), Channel("fcm"), Channel("webpush")
    content = Content(title="T", overrides={apns: {"aps": {"badge": 1}}, fcm: {"data": {"a": "b"}}})
    common = message_of(notification(content))
    assert rendered_for(common, apns) == rendered_for(common, apns)
    assert (rendered_for(common, apns).override, rendered_for(common, fcm).override) == (
        {"aps": {"badge": 1}},
        {"data": {"a": "b"}},
    )
    assert rendered_for(common, webpush) is common
