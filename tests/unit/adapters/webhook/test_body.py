"""The bodies of webhooks: our own, which does not change, and those that chats read."""

from __future__ import annotations

import msgspec
import pytest

from tests.shows import shows
from tests.unit.adapters.deliveries import NID, TEXT_ID, notification
from waypost.channels.push.payload import named
from waypost.channels.webhook.body import render
from waypost.channels.webhook.settings import CHANNEL, BodyFormat
from waypost.domain.content import Action, Content, Kind
from waypost.domain.message import message_of, rendered_for

RICH = Content(title="A <b> & *c*", body="Line `x`", link="https://example.com/1", data={"order": 7})


def said(content: Content, body_format: BodyFormat, kind: Kind = Kind.VISIBLE) -> object:
    """The document that a receiver reads."""
    message = rendered_for(message_of(notification(content, kind=kind)), CHANNEL)
    return msgspec.json.decode(named(render(message, body_format), NID))


@shows("S4-49")
def test_our_own_body() -> None:
    content = msgspec.structs.replace(RICH, actions=(Action("yes", "Yes"),), collapse_key="order7")
    assert said(content, BodyFormat.STANDARD) == {
        "type": "notification",
        "timestamp": "2027-01-15T08:00:00.000Z",
        "notification_id": TEXT_ID,
        "data": {"order": 7},
        "title": "A <b> & *c*",
        "body": "Line `x`",
        "link": "https://example.com/1",
        "actions": [{"action": "yes", "title": "Yes"}],
        "tag": "order7",
    }


def test_fields_for_webhooks_alone_lie_over_it() -> None:
    content = Content(data={"a": 1}, overrides={CHANNEL: {"type": "order.paid", "data": {"b": 2}}})
    assert said(content, BodyFormat.STANDARD, Kind.SILENT) == {
        "type": "order.paid",
        "timestamp": "2027-01-15T08:00:00.000Z",
        "notification_id": TEXT_ID,
        "data": {"a": 1, "b": 2},
    }


def test_slack_reads_text_with_its_three_characters_escaped() -> None:
    assert said(RICH, BodyFormat.SLACK) == {"text": "*A &lt;b&gt; &amp; *c**\nLine `x`\n<https://example.com/1>"}


def test_teams_reads_an_adaptive_card() -> None:
    assert said(RICH, BodyFormat.TEAMS) == {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [
                        {
                            "type": "TextBlock",
                            "text": "A <b> & *c*",
                            "wrap": True,
                            "weight": "Bolder",
                            "size": "Medium",
                        },
                        {"type": "TextBlock", "text": "Line `x`", "wrap": True},
                    ],
                    "actions": [
                        {"type": "Action.OpenUrl", "title": "https://example.com/1", "url": "https://example.com/1"}
                    ],
                },
            }
        ],
    }


def test_discord_reads_content_and_mentions_nobody() -> None:
    assert said(RICH, BodyFormat.DISCORD) == {
        "content": "**A <b\\> & \\*c\\***\nLine \\`x\\`\nhttps://example.com/1",
        "allowed_mentions": {"parse": []},
    }


@pytest.mark.parametrize(("length", "shown"), [(2_000, 2_000), (2_001, 2_000), (10_000, 2_000)])
def test_discord_takes_2000_characters(length: int, shown: int) -> None:
    document = said(Content(body="x" * length), BodyFormat.DISCORD)
    assert isinstance(document, dict)
    assert len(document["content"]) == shown
    assert document["content"].endswith("…") == (length > 2_000)
