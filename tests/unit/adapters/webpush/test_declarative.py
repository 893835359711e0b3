"""Declarative Web Push: one JSON that a browser shows by itself, or hands to a service worker."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.deliveries import NOW, TEXT_ID, notification
from tests.unit.adapters.webpush.test_payload import FULL
from waypost.channels.push.payload import named
from waypost.channels.webpush.payload import render
from waypost.channels.webpush.settings import CHANNEL
from waypost.domain.channel import Channel
from waypost.domain.content import Action, Content, Kind
from waypost.domain.message import message_of, rendered_for
from waypost.lab.declarative import verdict

LINK = "https://example.com/orders/7"


def plaintext(content: Content, kind: Kind = Kind.VISIBLE) -> bytes:
    what = notification(content, kind=kind)
    return named(render(rendered_for(message_of(what), CHANNEL), NOW, declarative=True).plaintext, what.id)


def document(content: Content) -> Any:
    return msgspec.json.decode(plaintext(content))


def test_everything_to_show_is_under_notification_and_the_rest_under_its_data() -> None:
    assert document(FULL) == {
        "web_push": 8030,
        "waypost_id": TEXT_ID,
        "app_badge": 2,
        "notification": {
            "title": "Title",
            "body": "Body",
            "icon": "https://img.example.com/i.png",
            "image": "https://img.example.com/1.png",
            "requireInteraction": True,
            "tag": "order 7",
            "navigate": LINK,
            "actions": [
                {
                    "action": "open",
                    "title": "Open",
                    "icon": "https://img.example.com/a.png",
                    "navigate": "https://example.com/o",
                }
            ],
            "data": {
                "waypost_id": TEXT_ID,
                "kind": "visible",
                "subtitle": "Subtitle",
                "link": LINK,
                "sound": "chime",
                "badge": 2,
                "category": "ORDER",
                "thread": "orders",
                "data": {"order": 7},
            },
        },
    }
    assert verdict(plaintext(FULL)) == "declarative"


def test_an_action_without_a_link_opens_that_of_the_notification() -> None:
    """A declarative action must have one."""
    content = Content(title="T", link=LINK, actions=(Action("a", "A"),))
    assert document(content)["notification"]["actions"] == [{"action": "a", "title": "A", "navigate": LINK}]
    assert verdict(plaintext(content)) == "declarative"


@pytest.mark.parametrize(
    "content",
    [Content(title="T"), Content(body="B", link=LINK), Content(title="", body="B", link=LINK)],
    ids=["no link", "no title", "empty title"],
)
def test_what_lacks_title_or_link_goes_to_the_service_worker_as_before(content: Content) -> None:
    ordinary = render(rendered_for(message_of(notification(content)), CHANNEL), NOW).plaintext
    assert plaintext(content) == named(ordinary, notification().id)


def test_a_silent_one_is_for_the_service_worker() -> None:
    assert verdict(plaintext(Content(title="T", link=LINK, data={"sync": 1}), Kind.SILENT)) == "ordinary"


@given(
    st.dictionaries(
        st.sampled_from(
            ["title", "body", "lang", "tag", "dir", "icon", "image", "silent", "link", "actions", "badge", "renotify"]
        ),
        st.none()
        | st.booleans()
        | st.integers(-3, 2**63)
        | st.text(max_size=5)
        | st.just("https://example.com/x")
        | st.lists(st.dictionaries(st.sampled_from(["action", "title", "icon", "link"]), st.text(max_size=3))),
    )
)
def test_no_override_makes_a_declarative_push_that_a_browser_would_not_take(override: dict[str, Any]) -> None:
    content = Content(title="T", link=LINK, overrides={Channel("webpush"): override})
    assert verdict(plaintext(content)) in ("declarative", "ordinary")
