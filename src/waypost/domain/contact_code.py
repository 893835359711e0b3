"""Codes that prove whose an address is: made from a secret and a number of the store, so that no table has them. Pure.

Whoever reads the store finds a random number; whoever has the secret alone lacks that. Both are bound to the address.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import HOUR_MS, Instant

DIGITS: Final = 6
NONCE_BYTES: Final = 16
_MAC_BYTES: Final = 16


class PendingCode(Struct, frozen=True):
    """A code that is on its way to an address."""

    address: bytes
    """The hash of the address, with its user."""
    nonce: bytes
    expires_at: Instant


class LinkedCode(Struct, frozen=True):
    """The code that a link speaks of, and its user."""

    user_id: UserId
    nonce: bytes


def code_of(secret: bytes, pending: PendingCode) -> str:
    """Make the code: six digits, another for each number and address."""
    return f"{int.from_bytes(_mac(secret, b'code', pending.nonce + pending.address)) % 10**DIGITS:0{DIGITS}}"


def is_code(secret: bytes, pending: PendingCode, said: str) -> bool:
    """Tell whether *said* is the code, in a time that says nothing of it."""
    return hmac.compare_digest(code_of(secret, pending).encode(), said.encode())


def link_token(secret: bytes, app: AppId, code: LinkedCode) -> str:
    """Sign the last part of a link."""
    user = code.user_id.encode()
    mac = _mac(secret, b"link", app.encode() + b"\0" + code.nonce + user)[:_MAC_BYTES]
    return urlsafe_b64encode(code.nonce + mac + user).decode().rstrip("=")


def read_link_token(secret: bytes, app: AppId, token: str) -> LinkedCode | None:
    """Return what a link speaks of; None where we did not sign it."""
    try:
        raw = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        code = LinkedCode(UserId(raw[NONCE_BYTES + _MAC_BYTES :].decode()), raw[:NONCE_BYTES])
    except ValueError:
        return None
    return code if hmac.compare_digest(link_token(secret, app, code), token) else None


def counted_as(secret: bytes, app: AppId, address: str) -> bytes:
    """Return the name under which the codes to an address are counted, whoever asks for them."""
    return _mac(secret, b"count", app.encode() + b"\0" + address.encode())[:_MAC_BYTES]


def hour_of(now: Instant) -> int:
    """Return the number of the hour since 1970, in UTC."""
    return now // HOUR_MS


def _mac(secret: bytes, purpose: bytes, of: bytes) -> bytes:
    return hmac.digest(secret, purpose + b"\0" + of, hashlib.sha256)
