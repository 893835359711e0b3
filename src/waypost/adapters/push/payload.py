"""What the providers' JSON has in common."""

from __future__ import annotations

from typing import Any

from waypost.domain.ids import NotificationId, format_id
from waypost.domain.message import Message
from waypost.domain.outcome import Refused

ID_KEY = "waypost_id"
"""Under which an app finds the notification's id, whatever the platform."""


def says_the_same(one: Message, other: Message) -> bool:
    """Whether the renderings of two recipients of one bulk job differ by the notification's id alone."""
    return (
        one.content is other.content
        and one.kind is other.kind
        and one.urgency is other.urgency
        and one.expires_at == other.expires_at
    )


def renamed(body: bytes, before: NotificationId, after: NotificationId) -> bytes:
    """A rendered *body* with the id of another notification: its text is found nowhere else."""
    return body.replace(format_id(before).encode(), format_id(after).encode())


def present(fields: dict[str, Any]) -> dict[str, Any]:
    """*fields* without those that have no value."""
    return {key: value for key, value in fields.items() if value is not None}


def overlaid(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """*base* with *over* laid on it, objects key by key."""
    merged = dict(base)
    for key, value in over.items():
        beneath = merged.get(key)
        if isinstance(beneath, dict) and isinstance(value, dict):
            merged[key] = overlaid(beneath, value)
        else:
            merged[key] = value
    return merged


def too_large(size_bytes: int, limit_bytes: int) -> Refused | None:
    """The refusal of a payload that its provider would not take."""
    if size_bytes <= limit_bytes:
        return None
    return Refused("payload_too_large", f"{size_bytes} bytes, limit {limit_bytes}")
