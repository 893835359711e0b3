"""What a web subscription is told of a notification: headers and JSON, the same for every device of it.

Source: RFC 8030 section 5. The JSON is Waypost's own; a service worker reads it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec
from msgspec import Struct

from waypost.adapters.push.payload import ID_KEY, overlaid, present
from waypost.domain.delivery import remaining_ttl_s
from waypost.domain.errors import Fault
from waypost.domain.ids import format_id
from waypost.domain.notification import Action, Channel, Content, Kind, Notification, Urgency
from waypost.domain.time import Instant

TOPIC_LIMIT = 32

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
"""RFC 8030 section 5.3."""

# The RFC allows "-" and "_", too, but one service was seen to refuse "-".
_PLAIN_TOPIC = re.compile(r"[A-Za-z0-9]{1,32}")


class Rendering(Struct, frozen=True):
    """Headers beside path, authorization and time to live (`families`), and what will be encrypted."""

    headers: tuple[tuple[str, str], ...]
    ttl_s: int
    plaintext: bytes


def render(notification: Notification, now: Instant) -> Rendering:
    """What goes to each device of *notification*; *now* decides the remaining time to live."""
    headers = [
        ("content-encoding", "aes128gcm"),
        ("content-type", "application/octet-stream"),
        ("urgency", URGENCY[notification.kind][notification.urgency]),
    ]
    if notification.content.collapse_key:
        headers.append(("topic", fitted_topic(notification.content.collapse_key)))
    return Rendering(tuple(headers), remaining_ttl_s(notification, now), msgspec.json.encode(payload(notification)))


def payload(notification: Notification) -> dict[str, Any]:
    """The JSON object: what is said under the names of the API, the overrides over it, our id over all."""
    content = notification.content
    document: dict[str, Any] = {"kind": notification.kind.value}
    if content.data:
        document["data"] = content.data
    if notification.kind is Kind.VISIBLE:
        document |= _shown(content)
    override = content.overrides.get(Channel.WEBPUSH)
    if override:
        document = overlaid(document, override)
    document[ID_KEY] = format_id(notification.id)
    return document


def fitted_topic(collapse_key: str) -> str:
    """*collapse_key* where it fits the header, else the first half of its SHA-256 in hex."""
    if _PLAIN_TOPIC.fullmatch(collapse_key):
        return collapse_key
    return hashlib.sha256(collapse_key.encode()).hexdigest()[:TOPIC_LIMIT]


def faults(content: Content, kind: Kind) -> list[Fault]:
    """What could not be sent, with the path of each."""
    override = content.overrides.get(Channel.WEBPUSH, {})
    found = [Fault(f"overrides.webpush.{key}", "is set by Waypost") for key in (ID_KEY, "kind") if key in override]
    if kind is Kind.SILENT:
        found += [
            Fault(f"overrides.webpush.{key}", "a silent notification shows nothing")
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
        }
    )


def _action(action: Action) -> dict[str, Any]:
    """As ``showNotification`` wants it, with the link beside."""
    return present({"action": action.id, "title": action.title, "icon": action.icon, "link": action.link})
