"""API keys as text: ``wp_<8 base32 characters>_<52 base32 characters>``. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

from msgspec import Struct

RANDOM_BYTES = 37
"""5 bytes for the prefix, 32 for the secret."""

_PREFIX_BYTES = 5
_SHAPE = re.compile(r"(wp_[a-z2-7]{8})_[A-Za-z0-9]{32,128}", re.ASCII)


class NewKey(Struct, frozen=True):
    """A key just made; *text* is shown once and never stored."""

    text: str
    prefix: str
    secret_hash: bytes


def make(randomness: bytes) -> NewKey:
    """Make a key from RANDOM_BYTES unguessable bytes; fewer are a ValueError."""
    if len(randomness) < RANDOM_BYTES:
        raise ValueError(f"a key takes {RANDOM_BYTES} random bytes, not {len(randomness)}")
    prefix = f"wp_{_base32(randomness[:_PREFIX_BYTES])}"
    text = f"{prefix}_{_base32(randomness[_PREFIX_BYTES:RANDOM_BYTES])}"
    return NewKey(text, prefix, hashed(text))


def prefix_of(text: str) -> str | None:
    """Return the part that a key is looked up by; None where *text* does not have the shape of a key."""
    match = _SHAPE.fullmatch(text)
    return match[1] if match else None


def hashed(text: str) -> bytes:
    """Hash the whole key with SHA-256, the only form that is stored; a key is random, so it takes no slow hash."""
    return hashlib.sha256(text.encode()).digest()


def matches(presented_hash: bytes, stored_hash: bytes) -> bool:
    """Tell whether two hashes are equal, in constant time."""
    return hmac.compare_digest(presented_hash, stored_hash)


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()
