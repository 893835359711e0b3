"""Tickets: short-lived credentials for live connections of browsers, which can send no header. Pure."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

import msgspec

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.entrypoints.live.connection import Reader

_MAC_BYTES: Final = 16
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[AppId, UserId, int]).decode


def make_ticket(secret: bytes, reader: Reader, expires_at: Instant) -> str:
    """Make a ticket to the feed of *reader*."""
    said = _encode((reader.app, reader.user_id, expires_at))
    return base64.urlsafe_b64encode(_mac(secret, said) + said).decode().rstrip("=")


def read_ticket(secret: bytes, ticket: str, now: Instant) -> Reader | None:
    """Read whose feed *ticket* opens; None where it is none, is another installation's, or is over."""
    try:
        data = base64.b64decode(ticket + "=" * (-len(ticket) % 4), altchars=b"-_", validate=True)
        mac, said = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, _mac(secret, said)):
            return None
        app, user_id, expires_at = _decode(said)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
    return Reader(app, user_id) if now < expires_at else None


def _mac(secret: bytes, said: bytes) -> bytes:
    return hmac.digest(secret, b"live\n" + said, "sha256")[:_MAC_BYTES]
