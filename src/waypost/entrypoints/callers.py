"""The callers: API keys and tokens, verified before any body is read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Final

from waypost.domain import api_key
from waypost.domain.errors import ErrorCode, Unavailable, WaypostError
from waypost.domain.ids import AppId
from waypost.domain.scope import with_implied
from waypost.domain.time import SECOND_MS, Instant
from waypost.pipeline.intake import Caller
from waypost.ports.clock import Clock
from waypost.ports.keys import Keys
from waypost.ports.tokens import TokenVerifier
from waypost.runtime.ticker import every
from waypost.telemetry import Telemetry

CACHE_LIMIT: Final = 10_000
USES_WRITTEN_S: Final = 60.0
"""Seconds between two notes of when keys were used: never by the request that uses one."""


class UnknownKey(WaypostError):
    """The error of what reads like a guess: a key that is not there, or what is neither a key nor a token."""

    code = ErrorCode.UNAUTHENTICATED


_CREDENTIALS: Final = ("authorization", "x-api-key")
NOTHING_PRESENTED: Final = "give an API key or a token: Authorization: Bearer …"


class Authenticator:
    """A verifier of keys and tokens that trusts a verified one for *cache_s* seconds, so that a revoked one dies within
    that time, and one that expires at once (fulfils ports.lifecycle.Lifecycle).
    """

    def __init__(
        self,
        keys: Keys,
        tokens: TokenVerifier,
        apps: Mapping[AppId, object],
        clock: Clock,
        cache_s: float,
        telemetry: Telemetry,
    ) -> None:
        self._keys = keys
        self._tokens = tokens
        self._apps = apps
        self._clock = clock
        self._cache_s = cache_s
        self._telemetry = telemetry
        self._verified: dict[bytes, tuple[Caller, float]] = {}
        self._used: dict[str, Instant] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to note when keys are used."""
        self._task = asyncio.create_task(every(USES_WRITTEN_S, self.write_uses, self._telemetry, "key uses"))

    async def stop(self) -> None:
        """Write the uses that are not written yet."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            with contextlib.suppress(Unavailable):
                await self.write_uses()

    async def caller(self, presented: str | None) -> Caller:
        """Find the caller behind the key or token *presented*; WaypostError where there is none, or it is not valid."""
        if presented is None:
            raise WaypostError(NOTHING_PRESENTED, ErrorCode.UNAUTHENTICATED)
        digest = api_key.hashed(presented)
        return self.known(digest) or await self.verified(presented, digest)

    def known(self, digest: bytes) -> Caller | None:
        """Return the caller behind what was verified a moment ago, by its hash."""
        known = self._verified.get(digest)
        return known[0] if known is not None and self._clock.monotonic() < known[1] else None

    async def write_uses(self) -> None:
        """Write when each key was used since the last time; Unavailable keeps it for the next."""
        uses, self._used = self._used, {}
        if uses:
            try:
                await self._keys.touch(uses)
            except Unavailable:
                self._used = uses | self._used
                raise

    async def verified(self, text: str, digest: bytes) -> Caller:
        """Verify the key or token *text*, whose hash is *digest*; a WaypostError where it is not valid."""
        self._verified.pop(digest, None)
        asked_at = self._clock.monotonic()
        prefix = api_key.prefix_of(text)
        if prefix is not None:
            caller, expires_at = await self._of_key(prefix, digest)
        elif is_token(text):
            caller, expires_at = await self._of_token(text)
        else:
            raise UnknownKey("this is neither an API key nor a token")
        if caller.app not in self._apps:
            raise WaypostError(f"the app {caller.app} of this key is not configured", ErrorCode.FORBIDDEN)
        believed_s = self._cache_s
        if expires_at is not None:
            believed_s = min(believed_s, (expires_at - self._clock.now()) / SECOND_MS)
        if len(self._verified) >= CACHE_LIMIT:
            self._verified.clear()
        self._verified[digest] = (caller, asked_at + believed_s)
        return caller

    async def _of_key(self, prefix: str, digest: bytes) -> tuple[Caller, Instant | None]:
        key = await self._keys.find(prefix)
        if key is None or not api_key.matches(digest, key.secret_hash):
            raise UnknownKey("the API key is not valid")
        if key.revoked_at is not None:
            raise WaypostError("the API key is not valid", ErrorCode.UNAUTHENTICATED)
        now = self._clock.now()
        if key.expires_at is not None and key.expires_at <= now:
            raise WaypostError("the API key has expired", ErrorCode.UNAUTHENTICATED)
        self._used[prefix] = now
        return Caller(key.app, key.caller, with_implied(key.scopes)), key.expires_at

    async def _of_token(self, text: str) -> tuple[Caller, Instant]:
        bearer = await self._tokens.verify(text)
        return Caller(bearer.app, bearer.name, with_implied(bearer.scopes), bearer.user), bearer.expires_at


def is_token(credential: str) -> bool:
    """Tell whether *credential* has the shape of a JSON Web Token (RFC 7515 section 7.1), which nobody guesses."""
    return credential.count(".") == 2


def presented(fields: Iterable[tuple[str, str]]) -> str | None:
    """Find the one credential among header fields with names in lower case; None where there is none.

    Two are refused, whatever they say: what stands before us might have believed the other.
    """
    given = [(name, value) for name, value in fields if name in _CREDENTIALS]
    if len(given) > 1:
        raise WaypostError("give one credential, in one header", ErrorCode.UNAUTHENTICATED)
    return _credential(*given[0]) if given else None


def _credential(name: str, value: str) -> str | None:
    if name == "x-api-key":
        return value.strip()
    scheme, _, text = value.strip().partition(" ")
    return text.strip() if name == "authorization" and scheme.lower() == "bearer" else None
