"""Keys: make, rotate and revoke API keys, each on record before it is done."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from waypost.domain import api_key
from waypost.domain.errors import NotFound
from waypost.domain.ids import AppId, CallerId
from waypost.domain.scope import Scope
from waypost.domain.time import Instant, later
from waypost.ports.audit import Act
from waypost.ports.keys import ApiKey, Keys, issued, successor

Record = Callable[[Act, ApiKey], Awaitable[None]]
"""A function that notes, durably, who orders what of which key."""


async def make_key(
    keys: Keys,
    record: Record,
    app: AppId,
    caller: CallerId,
    scopes: frozenset[Scope],
    lifetime_ms: int | None,
    now: Instant,
) -> tuple[str, ApiKey]:
    """Make a new key; return its text, which is known here alone, and what is stored of it."""
    made = _new()
    stored = issued(made, app, caller, now, scopes, lifetime_ms)
    await record(Act.KEY_MADE, stored)
    await keys.add(stored)
    return made.text, stored


async def rotate_key(
    keys: Keys, record: Record, prefix: str, overlap_ms: int, now: Instant, app: AppId | None = None
) -> tuple[str, ApiKey]:
    """Replace a key with a new one; the old ends after the overlap. NotFound where none is live (in *app*)."""
    old, made = await _found(keys, prefix, app), _new()
    new = successor(old, made, now)
    await record(Act.KEY_ROTATED, old)
    if not await keys.replace(prefix, new, later(now, overlap_ms)):
        raise _no_such_key()
    return made.text, new


async def revoke_key(keys: Keys, record: Record, prefix: str, now: Instant, app: AppId | None = None) -> None:
    """Refuse a key from now on; NotFound where none is live (in *app*)."""
    await record(Act.KEY_REVOKED, await _found(keys, prefix, app))
    if not await keys.revoke(prefix, now):
        raise _no_such_key()


async def _found(keys: Keys, prefix: str, app: AppId | None) -> ApiKey:
    key = await keys.find(prefix)
    if key is None or app not in (None, key.app):
        raise _no_such_key()
    return key


def _new() -> api_key.NewKey:
    return api_key.make(secrets.token_bytes(api_key.RANDOM_BYTES))


def _no_such_key() -> NotFound:
    return NotFound("no such live key")
