"""Invitations: what lets a browser in where nobody logs in, signed with a key that only the service's user can read.

A link is traded for a session. Both say when they end and are good until then, in every process of the machine and
after a restart, since each reads the key with each request; a new key ends them all at once.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from waypost.domain.errors import ConfigurationError
from waypost.domain.time import HOUR_MS, SECOND_MS, Instant, later

LASTS_MS: Final = 12 * HOUR_MS
"""How long a link is good, and then the session that it is traded for."""
_FILE: Final = "dashboard.key"
_KEY_BYTES: Final = 32
_DIGITS: Final = 12
"""The most digits of a time in seconds."""


class NoKey(ConfigurationError):
    """The error that no service has made a key here."""


class Invitations:
    """Links and sessions of one machine; *folder* is the one beside the store that its processes share."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE

    def prepare(self) -> None:
        """Make the key where there is none, as the service does when it starts; OSError where it cannot be kept."""
        if self._key() is None:
            self.renew()

    def renew(self) -> None:
        """Make another key, which ends all links and sessions; OSError where it cannot be kept."""
        new = self._path.with_name(f"{_FILE}.{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
            new.replace(self._path)
        finally:
            new.unlink(missing_ok=True)

    def link(self, now: Instant) -> str:
        """Make the token of a link; NoKey where there is no key."""
        return self._made("link", now)

    def session(self, now: Instant) -> str:
        """Make the value of a cookie; NoKey where there is no key."""
        return self._made("session", now)

    def is_link(self, token: str, now: Instant) -> bool:
        """Tell whether *token* is that of a link which is good."""
        return self._is_good("link", token, now)

    def is_session(self, cookie: str, now: Instant) -> bool:
        """Tell whether *cookie* is of a session that has not ended."""
        return self._is_good("session", cookie, now)

    def _made(self, what: str, now: Instant) -> str:
        if (key := self._key()) is None:
            raise NoKey("dashboard", f"there is no key in {self._path.parent}: `waypost serve` makes it when it starts")
        return _signed(key, what, later(now, LASTS_MS))

    def _is_good(self, what: str, said: str, now: Instant) -> bool:
        ends, _, _ = said.partition(".")
        if not (ends.isascii() and ends.isdigit() and len(ends) <= _DIGITS) or not said.isascii():
            return False
        ends_at, key = Instant(int(ends) * SECOND_MS), self._key()
        return key is not None and hmac.compare_digest(said, _signed(key, what, ends_at)) and now < ends_at

    def _key(self) -> bytes | None:
        """Read the key; None where there is none, or something else in its place."""
        try:
            key = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return key if len(key) == _KEY_BYTES else None


def _signed(key: bytes, what: str, ends_at: Instant) -> str:
    ends = f"{ends_at // SECOND_MS}"
    seal = base64.urlsafe_b64encode(hmac.digest(key, f"{what} {ends}".encode(), "sha256")).decode().rstrip("=")
    return f"{ends}.{seal}"
