"""The parts that the providers' JSON has in common."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from waypost.domain.delivery import Delivery
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.message import Message
from waypost.domain.outcome import Refused

ID_KEY = "waypost_id"
"""The key under which an app finds the notification's id, whatever the platform."""


ANY_ID: Final = format_id(NotificationId(os.urandom(16)))
"""Stands in a rendering for the id of the notification: made by chance, so that nobody's content holds it."""
_ANY_ID = ANY_ID.encode()


def told_alike(batch: Iterable[Delivery]) -> Iterator[tuple[Message, Iterator[Delivery]]]:
    """Group neighbours of *batch* by their message: it is rendered once for all of them."""
    return groupby(batch, key=_message_of)


_message_of = attrgetter("message")


def named(rendering: bytes, notification_id: NotificationId) -> bytes:
    """Put the id of a notification into a *rendering*."""
    return rendering.replace(_ANY_ID, format_id(notification_id).encode())


def present(fields: dict[str, Any]) -> dict[str, Any]:
    """Drop the *fields* that have no value."""
    return {key: value for key, value in fields.items() if value is not None}


def overlaid(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Lay *over* on *base*, objects key by key."""
    merged = dict(base)
    for key, value in over.items():
        beneath = merged.get(key)
        if isinstance(beneath, dict) and isinstance(value, dict):
            merged[key] = overlaid(beneath, value)
        else:
            merged[key] = value
    return merged


def too_large(size_bytes: int, limit_bytes: int) -> Refused | None:
    """Refuse a payload that its provider would not take."""
    if size_bytes <= limit_bytes:
        return None
    return Refused("payload_too_large", f"{size_bytes} bytes, limit {limit_bytes}")
