"""Who is calling: API keys from the request head, verified before any body is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from waypost.domain import api_key
from waypost.domain.errors import ErrorCode
from waypost.domain.ids import AppId
from waypost.entrypoints.rest.problems import Refused
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

    async def caller(self, headers: Iterable[tuple[bytes, bytes]]) -> Caller:
        """The caller behind the key in *headers*; Refused where there is none, or it is wrong or revoked."""
        text = _presented(headers)
        digest = api_key.hashed(text)
        known = self._verified.get(digest)
        if known is not None and self._clock.monotonic() < known[1]:
            return known[0]
        return await self._verify(text, digest)

    async def _verify(self, text: str, digest: bytes) -> Caller:
        self._verified.pop(digest, None)
        prefix = api_key.prefix_of(text)
        asked_at = self._clock.monotonic()
        key = await self._keys.find(prefix) if prefix else None
        if key is None or not api_key.matches(digest, key.secret_hash) or key.revoked_at is not None:
            raise Refused(ErrorCode.UNAUTHENTICATED, "the API key is not valid")
        if key.app not in self._apps:
            raise Refused(ErrorCode.FORBIDDEN, f"the app {key.app} of this key is not configured")
        caller = Caller(key.app, key.caller)
        if len(self._verified) >= CACHE_LIMIT:
            self._verified.clear()
        self._verified[digest] = (caller, asked_at + self._cache_s)
        return caller


def _presented(headers: Iterable[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == b"authorization":
            scheme, _, text = value.partition(b" ")
            if scheme.lower() == b"bearer":
                return text.strip().decode("latin-1")
        elif name == b"x-api-key":
            return value.strip().decode("latin-1")
    raise Refused(ErrorCode.UNAUTHENTICATED, "give an API key: Authorization: Bearer wp_…")
