"""API keys: the callers and their rights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from waypost.domain.api_key import NewKey
from waypost.domain.errors import Fault, InvalidRequest
from waypost.domain.ids import AppId, CallerId
from waypost.domain.scope import EVERY_SCOPE, Scope
from waypost.domain.time import Instant, later


class ApiKey(Struct, frozen=True):
    """An API key as stored: its secret only as a hash."""

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
    """The time from which it is refused; None is never."""
    made_for_ms: int | None = None
    """Of a key that was replaced, which ends sooner than it was made for: how long that was; 0 is for ever."""


class Keys(Protocol):
    """The store of API keys."""

    async def find(self, prefix: str) -> ApiKey | None:
        """Return the key with this prefix, revoked or not."""
        ...

    async def add(self, key: ApiKey) -> None:
        """Store a new key; a prefix in use is a ValueError."""
        ...

    async def all(self, app: AppId | None = None) -> list[ApiKey]:
        """List every key, oldest first."""
        ...

    async def revoke(self, prefix: str, at: Instant) -> bool:
        """Refuse a key from now on; False if there is no such live key."""
        ...

    async def replace(self, prefix: str, key: ApiKey, until: Instant) -> bool:
        """Store *key*, and let the one with *prefix* expire at *until* or when it would have: both, or neither.

        The life that one was given is kept, as *key* has it, so that it can be replaced again. False if that one was
        revoked or does not exist; a prefix in use is a ValueError.
        """
        ...

    async def touch(self, uses: Mapping[str, Instant]) -> None:
        """Note when each key was used, by prefix; the later of two stays."""
        ...


def issued(
    made: NewKey,
    app: AppId,
    caller: CallerId,
    now: Instant,
    scopes: frozenset[Scope] = EVERY_SCOPE,
    lifetime_ms: int | None = None,
) -> ApiKey:
    """Build the stored form of a new key; without a lifetime it lives until it is revoked.

    An InvalidRequest where the caller's name holds a colon: those are an issuer's (``login:alice``) or ours.
    """
    if ":" in caller:
        raise InvalidRequest(
            (Fault("caller", "holds a colon: such names are those of tokens and of the command line"),)
        )
    ends = None if lifetime_ms is None else later(now, lifetime_ms)
    return ApiKey(made.prefix, made.secret_hash, app, caller, now, scopes=scopes, expires_at=ends)


def successor(old: ApiKey, made: NewKey, now: Instant) -> ApiKey:
    """Build the key that replaces *old*: the same caller and scopes, and as long a life."""
    lifetime_ms = made_for_ms(old)
    ends = later(now, lifetime_ms) if lifetime_ms else None
    return ApiKey(made.prefix, made.secret_hash, old.app, old.caller, now, scopes=old.scopes, expires_at=ends)


def made_for_ms(key: ApiKey) -> int:
    """Return the lifetime that a key was given, milliseconds; 0 is without end."""
    if key.made_for_ms is not None:
        return key.made_for_ms
    return 0 if key.expires_at is None else key.expires_at - key.created_at
