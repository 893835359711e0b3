"""What APNs is told of a notification: headers and JSON, the same for every device of it.

Sources: developer.apple.com, "Generating a remote notification" and "Sending notification requests to APNs".
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from waypost.adapters.push.payload import ID_KEY, overlaid, present
from waypost.domain.delivery import remaining_ttl_s
from waypost.domain.errors import Fault
from waypost.domain.ids import format_id
from waypost.domain.notification import Channel, Content, Kind, Notification, Urgency
from waypost.domain.time import SECOND_MS, Instant

PAYLOAD_LIMIT_BYTES = 4096
COLLAPSE_ID_LIMIT_BYTES = 64

PRIORITY = {Urgency.CRITICAL: "10", Urgency.HIGH: "10", Urgency.NORMAL: "5", Urgency.LOW: "5"}
"""Of visible notifications; a silent one is always 5, Apple refuses 10 for it (requirements S1-T1)."""
SILENT_PRIORITY = "5"
SHOWN_KEYS = ("alert", "badge", "sound")
"""What a background push must not have in ``aps``."""


class Rendering(Struct, frozen=True):
    """Headers beside the path and the authorization, and the body."""

    headers: tuple[tuple[str, str], ...]
    body: bytes


def render(notification: Notification, topic: str, now: Instant) -> Rendering:
    """What goes to each device of *notification*; *now* decides the remaining time to live."""
    silent = notification.kind is Kind.SILENT
    headers = [
        ("apns-topic", topic),
        ("apns-push-type", "background" if silent else "alert"),
        ("apns-priority", SILENT_PRIORITY if silent else PRIORITY[notification.urgency]),
        ("apns-expiration", str(_expiration(notification, now))),
    ]
    if notification.content.collapse_key:
        headers.append(("apns-collapse-id", fitted_collapse_id(notification.content.collapse_key)))
    return Rendering(tuple(headers), msgspec.json.encode(payload(notification)))


def payload(notification: Notification) -> dict[str, Any]:
    """The JSON object: ``aps``, the caller's data beside it, the overrides over both, our id over all."""
    content = notification.content
    silent = notification.kind is Kind.SILENT
    document: dict[str, Any] = dict(content.data)
    if not silent:
        document |= _extras(content)
    document["aps"] = {"content-available": 1} if silent else _aps(content)
    override = content.overrides.get(Channel.APNS)
    if override:
        document = overlaid(document, override)
        if silent and isinstance(document["aps"], dict):
            document["aps"] = {key: value for key, value in document["aps"].items() if key not in SHOWN_KEYS}
    document[ID_KEY] = format_id(notification.id)
    return document


def fitted_collapse_id(collapse_key: str) -> str:
    """*collapse_key* where it fits the header (64 bytes, printable ASCII), else its SHA-256 in hex."""
    fits = collapse_key.isascii() and collapse_key.isprintable() and collapse_key == collapse_key.strip()
    if fits and len(collapse_key) <= COLLAPSE_ID_LIMIT_BYTES:
        return collapse_key
    return hashlib.sha256(collapse_key.encode()).hexdigest()


def faults(content: Content, kind: Kind) -> list[Fault]:
    """What APNs would refuse or we could not send, with the path of each."""
    found = [
        Fault(f"data.{key}", "the key is taken in an APNs payload") for key in ("aps", ID_KEY) if key in content.data
    ]
    override = content.overrides.get(Channel.APNS, {})
    if ID_KEY in override:
        found.append(Fault(f"overrides.apns.{ID_KEY}", "is set by Waypost"))
    aps = override.get("aps", {})
    if not isinstance(aps, dict):
        return [*found, Fault("overrides.apns.aps", "must be an object")]
    if kind is Kind.SILENT:
        found += [
            Fault(f"overrides.apns.aps.{key}", "a silent notification shows nothing")
            for key in SHOWN_KEYS
            if key in aps
        ]
    return found


def _expiration(notification: Notification, now: Instant) -> int:
    """UNIX seconds; 0 is one attempt at once, never stored."""
    if notification.ttl_ms == 0 or remaining_ttl_s(notification, now) == 0:
        return 0
    return notification.expires_at // SECOND_MS


def _aps(content: Content) -> dict[str, Any]:
    alert = {"title": content.title, "subtitle": content.subtitle, "body": content.body}
    return present(
        {
            "alert": present(alert) or None,
            "badge": content.badge,
            "sound": content.sound,
            "category": content.category,
            "thread-id": content.thread,
            "mutable-content": 1 if content.image is not None else None,
        }
    )


def _extras(content: Content) -> dict[str, Any]:
    """What ``aps`` has no key for, under names of ours that a notification service extension can read."""
    return present(
        {
            "waypost_image": content.image,
            "waypost_link": content.link,
            "waypost_actions": content.actions or None,
        }
    )
