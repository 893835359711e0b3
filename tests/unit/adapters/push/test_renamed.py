"""Recipients of one bulk job share a rendering: what is sent differs by the id alone, as if each had its own."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.adapters.deliveries import NOW, notification
from waypost.adapters.apns.payload import render as apns_render
from waypost.adapters.apns.settings import ApnsSettings
from waypost.adapters.fcm.payload import render as fcm_render
from waypost.adapters.push.payload import renamed, says_the_same
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.ids import NotificationId
from waypost.domain.message import Message, message_of
from waypost.domain.time import later

SETTINGS = ApnsSettings(key_file="k", key_id="ABCDE12345", team_id="FGHIJ67890", topic="com.example.demo")
OTHER_ID = NotificationId(bytes(range(16)))
CONTENT = Content(title="Title", body="Body", data={"order": 7, "nested": {"a": [1]}}, collapse_key="k")
VISIBLE = message_of(notification(CONTENT))
SILENT = message_of(notification(Content(data={"sync": "inbox"}), kind=Kind.SILENT))


@pytest.mark.parametrize("first", [VISIBLE, SILENT])
def test_a_renamed_rendering_is_the_others_own(first: Message) -> None:
    second = msgspec.structs.replace(first, id=OTHER_ID)
    assert says_the_same(first, second)
    of_apple, of_google = apns_render(first, SETTINGS, NOW), fcm_render(first, NOW)
    assert apns_render(second, SETTINGS, NOW).body == renamed(of_apple.body, first.id, second.id)
    assert apns_render(second, SETTINGS, NOW).headers == of_apple.headers
    assert fcm_render(second, NOW).rest == renamed(of_google.rest, first.id, second.id)


@pytest.mark.parametrize(
    "changes",
    [
        {"content": Content(title="Title", body="Body")},
        {"kind": Kind.SILENT},
        {"urgency": Urgency.HIGH},
        {"expires_at": later(VISIBLE.expires_at, 1_000)},
    ],
)
def test_what_is_sent_otherwise_is_rendered_for_itself(changes: dict[str, object]) -> None:
    """Content must be the same object: to compare it would cost as much as to render it."""
    assert not says_the_same(VISIBLE, msgspec.structs.replace(VISIBLE, **changes))
