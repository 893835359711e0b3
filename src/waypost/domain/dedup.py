"""Dedup keys: how it is known that two requests say the same thing twice."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from waypost.domain.content import Content, TemplateUse
from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.domain.words import Words

KEY_BYTES = 16

_BETWEEN: Final = "\n"
_AT_BYTES: Final = 6
_REST_BYTES: Final = 8
_DIGITS: Final = 14
_canonical = msgspec.msgpack.Encoder(order="deterministic").encode


class ClaimKind(Words):
    """The origin of a dedup key."""

    IDEMPOTENCY = "idempotency"
    CONTENT = "content"


class Claim(Struct, frozen=True):
    """A key that a notification claims in its own durable write."""

    kind: ClaimKind
    key: bytes
    """16 bytes of a SHA-256."""
    body_hash: bytes
    """16 bytes over all that the caller asked for; another body under the same idempotency key is a conflict."""
    until: Instant
    """The end of its window."""


def content_hash(content: Content) -> bytes:
    """Hash title, body and data with SHA-256 in a length-safe encoding, whatever the order of data's keys.

    Where a template says it: its name, its variables and the locale, whichever version is the published one.
    """
    return said_hash(content.title, content.body, content.data, content.template)


def said_hash(title: str | None, body: str | None, data: dict[str, Any], use: TemplateUse | None = None) -> bytes:
    """Hash what a content says as ``content_hash`` does; *use* is the template that says it, if one does."""
    said = [title, body, data]
    return _digest(said if use is None else [*said, use.name, use.variables, use.locale])


def shown(digest: bytes) -> str:
    """Format the first 16 hex characters of a hash, as answered and logged (requirements S1-78)."""
    return digest[:8].hex()


ENDED_BADLY: Final = frozenset(
    {
        NotificationStatus.FAILED,
        NotificationStatus.EXPIRED,
        NotificationStatus.CANCELLED,
        NotificationStatus.NO_TARGETS,
    }
)
"""The ends of a first notification after which the same content is new again: it reached nobody."""


def said_key(app: AppId, caller: CallerId, said: Any) -> bytes:
    """Derive the key that is equal where the same caller says all the same, to the last field."""
    return _digest(["said", app, caller, said])[:KEY_BYTES]


def content_key(app: AppId, caller: CallerId, user_id: UserId, content: Content) -> bytes:
    """Derive the key that is equal where the same caller tells the same user the same title, body and data.

    The notify API compares those alone (requirements S1-78).
    """
    return _digest(["content", app, caller, user_id, content_hash(content)])[:KEY_BYTES]


def idempotency_key(app: AppId, caller: CallerId, key: str) -> bytes:
    """Derive the dedup key of an idempotency key that a caller gave, or that is a place in a stream (`placed_key`)."""
    digest = _digest(["idempotency", app, caller, key])
    if _BETWEEN not in key:
        return digest[:KEY_BYTES]
    stream, _, place = key.partition(_BETWEEN)
    at = place.partition("-")[0] if "-" in place else place.rpartition(":")[2]
    start = _start_at(app, caller, stream, at)
    return digest[:KEY_BYTES] if start is None else start + digest[:_REST_BYTES]


def placed_key(stream: str, place: str) -> str:
    """Make the idempotency key of a message at a *place* of a stream, with a sign that no caller's own can have.

    Its dedup key sorts by the message's time, which begins a place in Redis, ``ms-n``, and ends one in Kafka,
    ``partition:offset:ms``: what came together stands together in a store's index, so that a batch touches few pages.
    """
    return f"{stream}{_BETWEEN}{place}"


@lru_cache(maxsize=256)
def _start_at(app: AppId, caller: CallerId, stream: str, at: str) -> bytes | None:
    """Derive what the keys of all messages of a time begin with; None where *at* is none."""
    if not at.isdecimal() or len(at) > _DIGITS:
        return None
    of_stream = _digest(["stream", app, caller, stream])[: KEY_BYTES - _AT_BYTES - _REST_BYTES]
    return of_stream + int(at).to_bytes(_AT_BYTES, "big")


def body_hash(request: Any) -> bytes:
    """Hash a request to 16 bytes, to tell whether a repeated idempotency key came with the same request."""
    return _digest(request)[:KEY_BYTES]


def _digest(value: Any) -> bytes:
    return sha256(_canonical(value)).digest()
