"""Who is calling: API keys, verified before any body is read."""

from __future__ import annotations

from collections.abc import Mapping

from waypost.domain import api_key
from waypost.domain.errors import ErrorCode, WaypostError
from waypost.domain.ids import AppId
from waypost.domain.scope import EVERY_SCOPE
from waypost.pipeline.intake import Caller
from waypost.ports.clock import Clock
from waypost.ports.keys import Keys

CACHE_LIMIT = 10_000


class Authenticator:
    """Verifies keys and believes a verified one for *cache_s* seconds, so that a revoked one dies within that time."""

    def __init__(self, keys: Keys, apps: Mapping[AppId, object], clock: Clock, cache_s: float) -> None:
        self._keys = keys
        self._apps = apps
        self._clock = clock
        self._cache_s = cache_s
        self._verified: dict[bytes, tuple[Caller, float]] = {}

    async def caller(self, presented: str | None) -> Caller:
        """The caller behind the key that was *presented*; a WaypostError where there is none, or it is not valid."""
        if presented is None:
            raise WaypostError("give an API key: Authorization: Bearer wp_…", ErrorCode.UNAUTHENTICATED)
        digest = api_key.hashed(presented)
        known = self._verified.get(digest)
        if known is not None and self._clock.monotonic() < known[1]:
            return known[0]
        return await self._verify(presented, digest)

    async def _verify(self, text: str, digest: bytes) -> Caller:
        self._verified.pop(digest, None)
        prefix = api_key.prefix_of(text)
        asked_at = self._clock.monotonic()
        key = await self._keys.find(prefix) if prefix else None
        if key is None or not api_key.matches(digest, key.secret_hash) or key.revoked_at is not None:
            raise WaypostError("the API key is not valid", ErrorCode.UNAUTHENTICATED)
        if key.app not in self._apps:
            raise WaypostError(f"the app {key.app} of this key is not configured", ErrorCode.FORBIDDEN)
        caller = Caller(key.app, key.caller, EVERY_SCOPE)
        if len(self._verified) >= CACHE_LIMIT:
            self._verified.clear()
        self._verified[digest] = (caller, asked_at + self._cache_s)
        return caller


def bearer(value: str) -> str | None:
    """The key in the value of an ``authorization`` header; None where it has another scheme."""
    scheme, _, text = value.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None
