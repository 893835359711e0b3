"""The part of a message that is for one platform: Android, or an iOS or web app with Firebase's SDK.

Sources: firebase.google.com, "REST Resource: projects.messages" (AndroidConfig, ApnsConfig, WebpushConfig).
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from waypost.channels.push.message import headers_of
from waypost.channels.push.payload import present
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.device import Platform
from waypost.domain.message import Message
from waypost.domain.time import DAY_MS, SECOND_MS, Instant

ANDROID: Final = Platform("android")
IOS: Final = Platform("ios_fcm")
"""An iOS app known by its registration token of Firebase, and not by Apple's device token."""
WEB: Final = Platform("web_fcm")
"""A web app known by its registration token of Firebase, and not by its subscription."""
PLATFORMS: Final = (ANDROID, IOS, WEB)

PRIORITY = {
    Kind.VISIBLE: {**dict.fromkeys(Urgency, "HIGH"), Urgency.LOW: "NORMAL"},
    Kind.SILENT: {**dict.fromkeys(Urgency, "NORMAL"), Urgency.CRITICAL: "HIGH", Urgency.HIGH: "HIGH"},
}
"""``android.priority`` (decision 0042)."""
LONGEST_TTL_S = 28 * DAY_MS // SECOND_MS
COLLAPSE_ID_LIMIT: Final = 64
SHOWN_BY_APPLE: Final = ("alert", "badge", "sound")


def part_for(platform: Platform, message: Message, now: Instant) -> dict[str, Any]:
    """Build the part of *message* that *platform* reads."""
    if platform == IOS:
        return {"apns": _apns(message, now)}
    if platform == WEB:
        return {"webpush": _webpush(message, now)}
    return {"android": _android(message, now)}


def ttl_of(message: Message, now: Instant) -> str:
    """Format what is left of the time to live."""
    return f"{min(message.remaining_ttl_s(now), LONGEST_TTL_S)}s"


def without_shown(document: dict[str, Any]) -> dict[str, Any]:
    """Remove all that would be shown, on whatever platform."""
    document = {key: value for key, value in document.items() if key != "notification"}
    for part in ("android", "webpush"):
        if isinstance(document.get(part), dict):
            document[part] = {key: value for key, value in document[part].items() if key != "notification"}
    match document.get("apns"):
        case {"payload": {"aps": dict(aps), **payload}, **apns}:
            kept = {key: value for key, value in aps.items() if key not in SHOWN_BY_APPLE}
            document["apns"] = {**apns, "payload": {**payload, "aps": kept}}
        case _:
            pass
    return document


def _android(message: Message, now: Instant) -> dict[str, Any]:
    content = message.content
    part: dict[str, Any] = {"priority": PRIORITY[message.kind][message.urgency], "ttl": ttl_of(message, now)}
    if content.collapse_key:
        part["collapse_key"] = content.collapse_key
    shown = {} if message.kind is Kind.SILENT else _android_notification(content)
    if shown:
        part["notification"] = shown
    return part


def _android_notification(content: Content) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if content.icon is not None and "://" not in content.icon:  # the name of a resource
        shown["icon"] = content.icon
    if content.sound is not None:
        shown["sound"] = content.sound
    if content.android_channel is not None:
        shown["channel_id"] = content.android_channel
    if content.collapse_key is not None:
        shown["tag"] = content.collapse_key
    if content.badge is not None:
        shown["notification_count"] = content.badge
    return shown


def _apns(message: Message, now: Instant) -> dict[str, Any]:
    """Build what FCM hands to Apple; it takes title and body from the common notification."""
    content, silent = message.content, message.kind is Kind.SILENT
    at_once = not silent and message.urgency is not Urgency.LOW
    headers = {
        "apns-push-type": "background" if silent else "alert",
        "apns-priority": "10" if at_once else "5",
        "apns-expiration": str(now // SECOND_MS + message.remaining_ttl_s(now) if message.ttl_ms else 0),
    }
    if content.collapse_key:
        headers["apns-collapse-id"] = _fitted_collapse_id(content.collapse_key)
    if silent:
        return {"headers": headers, "payload": {"aps": {"content-available": 1}}}
    alert = {"title": content.title, "subtitle": content.subtitle, "body": content.body}
    aps = {
        "alert": present(alert) if content.subtitle else None,
        "badge": content.badge,
        "sound": content.sound,
        "category": content.category,
        "thread-id": content.thread,
        "mutable-content": 1 if content.image else None,
    }
    part: dict[str, Any] = {"headers": headers, "payload": {"aps": present(aps)}}
    return part | {"fcm_options": {"image": content.image}} if content.image else part


def _fitted_collapse_id(collapse_key: str) -> str:
    fits = collapse_key.isascii() and collapse_key.isprintable() and len(collapse_key) <= COLLAPSE_ID_LIMIT
    return collapse_key if fits else hashlib.sha256(collapse_key.encode()).hexdigest()


def _webpush(message: Message, now: Instant) -> dict[str, Any]:
    """Build what FCM hands to browsers; it takes title, body and image from the common notification."""
    content = message.content
    headers = {name.capitalize(): value for name, value in headers_of(message)}
    part: dict[str, Any] = {"headers": {"TTL": ttl_of(message, now)[:-1], **headers}}
    if message.kind is Kind.SILENT:
        return part
    actions = [present({"action": it.id, "title": it.title, "icon": it.icon}) for it in content.actions]
    shown = present({"icon": content.icon, "tag": content.collapse_key, "actions": actions or None})
    if shown:
        part["notification"] = shown
    if content.link is not None and content.link.startswith("https://"):
        part["fcm_options"] = {"link": content.link}
    return part
