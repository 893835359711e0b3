"""What an app is told of a notification: headers and JSON, the same for every device of it."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from waypost.adapters.push.encryption import PLAINTEXT_LIMIT_BYTES
from waypost.adapters.push.fitting import Fit, fitted
from waypost.adapters.push.message import headers_of, message
from waypost.adapters.unifiedpush.settings import CHANNEL
from waypost.domain.delivery import remaining_ttl_s
from waypost.domain.notification import Content, Notification
from waypost.domain.time import Instant

LIMIT_BYTES = PLAINTEXT_LIMIT_BYTES
"""A push server takes 4,096 bytes of body; what encryption needs of them is left free for devices without keys, too."""


class Rendering(Struct, frozen=True):
    """Headers beside path, authorization and encoding, and what the app will read."""

    headers: tuple[tuple[str, str], ...]
    plaintext: bytes


def render(notification: Notification, now: Instant, fit: Fit) -> Rendering:
    """What goes to each device of *notification*; *now* decides the remaining time to live."""
    headers = (("ttl", str(remaining_ttl_s(notification, now))), *headers_of(notification))
    plaintext = _written(notification, notification.content)
    if fit == "trim" and len(plaintext) > LIMIT_BYTES:
        content = fitted(notification.content, lambda tried: len(_written(notification, tried)), LIMIT_BYTES)
        plaintext = plaintext if content is None else _written(notification, content)
    return Rendering(headers, plaintext)


def _written(notification: Notification, content: Content) -> bytes:
    return msgspec.json.encode(message(notification, content, CHANNEL))
