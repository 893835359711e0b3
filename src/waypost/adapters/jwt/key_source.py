"""The sources of an issuer's keys, and how long the keys are believed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

import jwt

from waypost.adapters.jwt.key_set import KeySet, parsed
from waypost.adapters.jwt.settings import Algorithm
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.ports.clock import Clock
from waypost.telemetry import Event, Telemetry

PAUSE_S: Final = 10.0
"""Seconds between two questions for one key set, whatever ids tokens name."""
BELIEVED_S: Final = 86_400.0
"""Seconds for which a key set is believed while its source is away: a day."""


class VerifyingKeys(Protocol):
    """The keys of one issuer."""

    async def start(self) -> None:
        """Begin to ask for them."""
        ...

    async def stop(self) -> None:
        """Ask no more."""
        ...

    async def find(self, kid: str | None, algorithm: Algorithm) -> jwt.PyJWK | None:
        """Find the key that a token names; None where there is none. Unavailable where no key is known yet."""
        ...


class SharedKeys:
    """The keys of an issuer that shares a secret (fulfils VerifyingKeys)."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    async def start(self) -> None:
        """See VerifyingKeys."""

    async def stop(self) -> None:
        """See VerifyingKeys."""

    async def find(self, kid: str | None, algorithm: Algorithm) -> jwt.PyJWK | None:
        """See VerifyingKeys; the id is not looked at."""
        return self._keys.get((None, algorithm))


class FetchedKeys:
    """A key set that is fetched again: in time, and where a token names an unknown key (fulfils VerifyingKeys).

    One question at a time, PAUSE_S apart. What was had last stays while there is no answer, or none that is a key set.
    """

    def __init__(
        self,
        name: str,
        fetch: Callable[[], Awaitable[bytes]],
        algorithms: Iterable[Algorithm],
        refresh_s: float,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._algorithms = tuple(algorithms)
        self._refresh_s = refresh_s
        self._clock = clock
        self._telemetry = telemetry
        self._keys: KeySet = {}
        self._had_s = self._asked_s = float("-inf")
        self._asking: asyncio.Task[None] | None = None
        self._is_away = False

    async def start(self) -> None:
        """See VerifyingKeys."""
        self._ask()

    async def stop(self) -> None:
        """See VerifyingKeys."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def find(self, kid: str | None, algorithm: Algorithm) -> jwt.PyJWK | None:
        """See VerifyingKeys."""
        wanted, age_s = (kid, algorithm), self._age_s()
        if age_s >= BELIEVED_S or wanted not in self._keys:
            asking = self._ask()
            if asking is not None:
                await asyncio.shield(asking)  # others wait for the same answer
        elif age_s >= self._refresh_s:
            self._ask()
        if self._age_s() >= BELIEVED_S:
            raise Unavailable(f"the keys of {self._name} cannot be had", ErrorCode.ISSUER_AWAY, int(PAUSE_S))
        return self._keys.get(wanted)

    def _age_s(self) -> float:
        return self._clock.monotonic() - self._had_s

    def _ask(self) -> asyncio.Task[None] | None:
        """Return the question that is open, or ask a new one; None where the last is too near."""
        if self._asking is None and self._clock.monotonic() - self._asked_s >= PAUSE_S:
            self._asked_s = self._clock.monotonic()
            self._asking = asyncio.create_task(self._renew())
        return self._asking

    async def _renew(self) -> None:
        try:
            self._keys = parsed(await self._fetch(), self._algorithms)
        except (OSError, ValueError) as error:
            if not self._is_away:
                self._telemetry.event(Event.TOKEN_KEYS_AWAY, issuer=self._name, why=str(error))
            self._is_away = True
        else:
            self._had_s = self._asked_s
            if self._is_away:
                self._telemetry.event(Event.TOKEN_KEYS_BACK, issuer=self._name)
            self._is_away = False
        finally:
            self._asking = None
