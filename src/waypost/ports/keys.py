"""API keys: who may call."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, CallerId
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
