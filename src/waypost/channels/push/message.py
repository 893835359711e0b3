"""The message to a push subscription: headers, and the JSON that the app or its service worker reads.

Source of the headers: RFC 8030 section 5. The JSON is Waypost's own.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from waypost.channels.push.payload import ANY_ID, ID_KEY, overlaid, present
from waypost.domain.channel import Channel
from waypost.domain.content import Action, Content, Kind, Urgency
from waypost.domain.errors import Fault
from waypost.domain.message import Message

TOPIC_LIMIT = 32
ENCRYPTED: Final = (("content-encoding", "aes128gcm"), ("content-type", "application/octet-stream"))
"""The headers of a message encrypted by RFC 8291."""

URGENCY: dict[Kind, dict[Urgency, str]] = {
    Kind.VISIBLE: {
        Urgency.CRITICAL: "high",
        Urgency.HIGH: "high",
        Urgency.NORMAL: "normal",
        Urgency.LOW: "low",
    },
    Kind.SILENT: {
        Urgency.CRITICAL: "high",
        Urgency.HIGH: "normal",
        Urgency.NORMAL: "low",
        Urgency.LOW: "very-low",
    },
}
"""The header ``urgency`` (RFC 8030 section 5.3)."""

# The RFC allows "-" and "_", too, but one service was seen to refuse "-".
_PLAIN_TOPIC = re.compile(r"[A-Za-z0-9]{1,32}")


def headers_of(message: Message) -> list[tuple[str, str]]:
    """Build the headers for urgency and for what the message replaces."""
    headers = [("urgency", URGENCY[message.kind][message.urgency])]
    if message.content.collapse_key:
        headers.append(("topic", fitted_topic(message.content.collapse_key)))
    return headers


def document_of(message: Message, content: Content) -> dict[str, Any]:
    """Build the JSON object: *content* under the names of the API, its override over it, the id over all."""
    document: dict[str, Any] = {"kind": message.kind.value}
    if content.data:
        document["data"] = content.data
    if message.kind is Kind.VISIBLE:
        document |= _shown(content)
    if message.override:
        document = overlaid(document, message.override)
    document[ID_KEY] = ANY_ID
    return document


def fitted_topic(collapse_key: str) -> str:
    """Return *collapse_key* where it fits the header, else the first half of its SHA-256 in hex."""
    if _PLAIN_TOPIC.fullmatch(collapse_key):
        return collapse_key
    return hashlib.sha256(collapse_key.encode()).hexdigest()[:TOPIC_LIMIT]


def message_faults(content: Content, kind: Kind, channel: Channel) -> list[Fault]:
    """List what could not be sent, with the path of each."""
    override = content.overrides.get(channel, {})
    found = [Fault(f"overrides.{channel}.{key}", "is set by Waypost") for key in (ID_KEY, "kind") if key in override]
    if kind is Kind.SILENT:
        found += [
            Fault(f"overrides.{channel}.{key}", "a silent notification shows nothing")
            for key in ("title", "body")
            if key in override
        ]
    return found


def _shown(content: Content) -> dict[str, Any]:
    return present(
        {
            "title": content.title,
            "subtitle": content.subtitle,
            "body": content.body,
            "image": content.image,
            "icon": content.icon,
            "link": content.link,
            "actions": [_action(action) for action in content.actions] or None,
            "sound": content.sound,
            "badge": content.badge,
            "category": content.category,
            "thread": content.thread,
            "tag": content.collapse_key,
        }
    )


def _action(action: Action) -> dict[str, Any]:
    """Build an action as ``showNotification`` wants it, with the link beside."""
    return present({"action": action.id, "title": action.title, "icon": action.icon, "link": action.link})
