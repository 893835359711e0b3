"""Dedup keys: how it is known that two requests say the same thing twice."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from waypost.domain.content import Content
from waypost.domain.ids import AppId, CallerId, UserId
from waypost.domain.time import Instant
from waypost.domain.words import Words

KEY_BYTES = 16

_canonical = msgspec.msgpack.Encoder(order="deterministic")


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
    """Hash title, body and data with SHA-256 in a length-safe encoding, whatever the order of data's keys."""
    return _digest([content.title, content.body, content.data])


def shown(digest: bytes) -> str:
    """Format the first 16 hex characters of a hash, as answered and logged (requirements S1-78)."""
    return digest[:8].hex()


def content_key(app: AppId, caller: CallerId, user_id: UserId, content: Content) -> bytes:
    """Derive the key that is equal where the same caller tells the same user the same content."""
    said: list[object] = ["content", app, caller, user_id, content_hash(content)]
    if content.push_type is not None:
        # Such a push says what it says in the provider's own fields.
        said += [content.push_type, content.overrides]
    if content.to is not None:
        said.append(content.to)
    return _digest(said)[:KEY_BYTES]


def idempotency_key(app: AppId, caller: CallerId, key: str) -> bytes:
    """Derive the dedup key of an idempotency key that a caller gave."""
    return _digest(["idempotency", app, caller, key])[:KEY_BYTES]


def body_hash(request: Any) -> bytes:
    """Hash a request to 16 bytes, to tell whether a repeated idempotency key came with the same request."""
    return _digest(request)[:KEY_BYTES]


def _digest(value: Any) -> bytes:
    return hashlib.sha256(_canonical.encode(value)).digest()
