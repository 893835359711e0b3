"""The body of a webhook: our own JSON, or what the incoming webhooks of Slack, Teams and Discord read.

Sources: Slack, "Sending messages using incoming webhooks" (``text``, mrkdwn; ``&``, ``<`` and ``>`` escaped);
Microsoft, "Create Incoming Webhooks" for Teams (a message with an adaptive card as its attachment); Discord,
"Execute Webhook" (``content``, at most 2,000 characters; ``allowed_mentions``). Our own body is described in
docs/webhooks.md; keys may be added to it, none is taken away.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from waypost.channels.push.message import document_of
from waypost.channels.push.payload import ANY_ID, ID_KEY, overlaid, present
from waypost.channels.webhook.settings import BodyFormat
from waypost.domain.content import Kind
from waypost.domain.message import Message
from waypost.domain.time import isoformat

LIMIT_BYTES: Final = 64 * 1024
"""The most bytes of a body: what a notification may have as stored."""
DISCORD_LIMIT: Final = 2_000
NOTIFICATION: Final = "notification"
"""The ``type`` of a message to a user's URL."""


def render(message: Message, body_format: BodyFormat) -> bytes:
    """Render the body, the same for each receiver; the id of the notification is put in later.

    What is silent shows nothing, so that no chat reads it: it is in our own words.
    """
    written = _standard if message.kind is Kind.SILENT else _BODIES[body_format]
    return msgspec.json.encode(overlaid(written(message), message.override))


def _standard(message: Message) -> dict[str, Any]:
    document = document_of(msgspec.structs.replace(message, override={}), message.content)
    del document["kind"], document[ID_KEY]
    return {"type": NOTIFICATION, "timestamp": isoformat(message.created_at), "notification_id": ANY_ID} | document


def _slack(message: Message) -> dict[str, Any]:
    content = message.content
    title = [f"*{_slack_text(content.title)}*"] if content.title else []
    said = [_slack_text(text) for text in (content.subtitle, content.body) if text]
    link = [f"<{_slack_text(content.link)}>"] if content.link else []
    return {"text": "\n".join(title + said + link)}


def _slack_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(message: Message) -> dict[str, Any]:
    content = message.content
    title = [_block(content.title) | {"weight": "Bolder", "size": "Medium"}] if content.title else []
    said = [_block(text) for text in (content.subtitle, content.body) if text]
    link = content.link
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": title + said,
        "actions": [{"type": "Action.OpenUrl", "title": link, "url": link}] if link else None,
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": present(card),
    }
    return {"type": "message", "attachments": [attachment]}


def _block(text: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True}


def _discord(message: Message) -> dict[str, Any]:
    content = message.content
    title = [f"**{_discord_text(content.title)}**"] if content.title else []
    said = [_discord_text(text) for text in (content.subtitle, content.body) if text]
    text = "\n".join(title + said + ([content.link] if content.link else []))
    shown = text if len(text) <= DISCORD_LIMIT else f"{text[: DISCORD_LIMIT - 1]}…"
    return {"content": shown, "allowed_mentions": {"parse": []}}


_MARKS = re.compile(r"([\\*_~`|>#\[\]])")


def _discord_text(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)


_BODIES: Final[dict[BodyFormat, Callable[[Message], dict[str, Any]]]] = {
    BodyFormat.STANDARD: _standard,
    BodyFormat.SLACK: _slack,
    BodyFormat.TEAMS: _teams,
    BodyFormat.DISCORD: _discord,
}
