"""The message to an app: headers and JSON, the same for every device of it."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from waypost.channels.push.encryption import PLAINTEXT_LIMIT_BYTES
from waypost.channels.push.fitting import Fit, fitted
from waypost.channels.push.message import document_of, headers_of
from waypost.domain.content import Content
from waypost.domain.message import Message
from waypost.domain.time import Instant

LIMIT_BYTES = PLAINTEXT_LIMIT_BYTES
"""The most bytes of a message: a push server takes 4,096; room for encryption is left free without keys, too."""


class Rendering(Struct, frozen=True):
    """The headers beside path, authorization and encoding, and what the app will read."""

    headers: tuple[tuple[str, str], ...]
    plaintext: bytes


def render(message: Message, now: Instant, fit: Fit) -> Rendering:
    """Render what goes to each device of *notification*; *now* decides the remaining time to live."""
    headers = (("ttl", str(message.remaining_ttl_s(now))), *headers_of(message))
    plaintext = _written(message, message.content)
    if fit == "trim" and len(plaintext) > LIMIT_BYTES:
        content = fitted(message.content, lambda tried: len(_written(message, tried)), LIMIT_BYTES)
        plaintext = plaintext if content is None else _written(message, content)
    return Rendering(headers, plaintext)


def _written(message: Message, content: Content) -> bytes:
    return msgspec.json.encode(document_of(message, content))
