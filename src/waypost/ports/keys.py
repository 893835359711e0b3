"""API keys: who may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, CallerId
from waypost.domain.scope import EVERY_SCOPE, Scope
from waypost.domain.time import Instant


class ApiKey(Struct, frozen=True):
    """A key as stored: its secret only as a hash."""

    prefix: str
    """The part that is shown and looked up by, such as ``wp_4k2h9x7a``."""
    secret_hash: bytes
    """SHA-256 of the whole key."""
    app: AppId
    caller: CallerId
    created_at: Instant
    last_used_at: Instant | None = None
    revoked_at: Instant | None = None
    scopes: frozenset[Scope] = EVERY_SCOPE
    expires_at: Instant | None = None
    """From then on it is refused; None is never."""


class Keys(Protocol):
    """The store of API keys."""

    async def find(self, prefix: str) -> ApiKey | None:
        """The key with this prefix, revoked or not."""
        ...

    async def add(self, key: ApiKey) -> None:
        """Store a new key; a prefix in use is a ValueError."""
        ...

    async def all(self, app: AppId | None = None) -> list[ApiKey]:
        """Every key, oldest first."""
        ...

    async def revoke(self, prefix: str, at: Instant) -> bool:
        """Refuse a key from now on; False if there is no such live key."""
        ...

    async def replace(self, prefix: str, key: ApiKey, until: Instant) -> bool:
        """Store *key*, and let the one with *prefix* expire at *until* or when it would have: both, or neither.

        False if that one was revoked or does not exist; a prefix in use is a ValueError.
        """
        ...

    async def touch(self, uses: Mapping[str, Instant]) -> None:
        """Note when each key was used, by prefix; the later of two stays."""
        ...
