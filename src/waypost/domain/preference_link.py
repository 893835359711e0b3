"""Links by which a user reaches their preferences without a session: signed, so that nobody can name another. Pure."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, UserId

_MAC_BYTES: Final = 16


class LinkedUser(Struct, frozen=True):
    """The user of a link, and what its one click unsubscribes from."""

    user_id: UserId
    kind: str = ""
    """The type of the message that it stands in; "" is of no type."""
    channel: str = ""
    """The channel of the message; "" is a link that stands in none."""


class PreferenceLinks(Struct, frozen=True):
    """The maker of links."""

    base: str
    """The address of the API, as users reach it."""
    secret: bytes

    def url(self, app: AppId, user: LinkedUser) -> str:
        """Return the address of the page."""
        return f"{self.base}/p/{app}/{link_token(self.secret, app, user)}"


def link_token(secret: bytes, app: AppId, user: LinkedUser) -> str:
    """Sign the last part of a link."""
    said = f"{user.kind}\n{user.channel}\n{user.user_id}".encode()
    return urlsafe_b64encode(_mac(secret, app, said) + said).decode().rstrip("=")


def read_link_token(secret: bytes, app: AppId, token: str) -> LinkedUser | None:
    """Return what a link speaks of; None where we did not sign it."""
    try:
        raw = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        kind, channel, user_id = raw[_MAC_BYTES:].decode().split("\n", 2)
    except ValueError:
        return None
    user = LinkedUser(UserId(user_id), kind, channel)
    return user if hmac.compare_digest(link_token(secret, app, user), token) else None


def _mac(secret: bytes, app: AppId, said: bytes) -> bytes:
    return hmac.digest(secret, b"preferences\0" + app.encode() + b"\0" + said, hashlib.sha256)[:_MAC_BYTES]
