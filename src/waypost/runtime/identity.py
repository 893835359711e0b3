"""Identity: the API keys, remembered for when the store that knows them is away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.keys import ApiKey, Keys
from waypost.runtime.ticker import every
from waypost.telemetry import Telemetry

REFRESH_S = 10.0
BELIEVED_S = 3_600.0
"""Seconds after which a snapshot is not used any more: a key that was revoked in the meantime is in it."""


class _Snapshot(Struct, frozen=True):
    """A snapshot of every key as the store had it, and when."""

    taken_at: Instant
    keys: list[ApiKey]


class RememberedKeys:
    """The keys of a store; while it is away, those of the last look at all of them (see ports.keys.Keys).

    The look is kept in a file, too, with hashes alone and for this user's eyes: a process that is started meanwhile
    takes it from there.
    """

    def __init__(self, keys: Keys, path: Path, clock: Clock) -> None:
        self._keys = keys
        self._path = path
        self._clock = clock
        self._known: Mapping[str, ApiKey] = {}
        self._taken_s = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def start(self, telemetry: Telemetry) -> None:
        """Load the keys from the file, then read them from the store again and again."""
        self._load()
        self._task = asyncio.create_task(every(REFRESH_S, self.refresh, telemetry, "identity"))

    async def stop(self) -> None:
        """Stop reading keys."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def age_s(self) -> float | None:
        """How old the snapshot is; None where there is none that may be used."""
        age_s = self._clock.monotonic() - self._taken_s
        return age_s if age_s < BELIEVED_S else None

    async def refresh(self) -> None:
        """Read all keys and keep them; Unavailable while the store is away."""
        asked_s, now = self._clock.monotonic(), self._clock.now()
        keys = await self._keys.all()
        self._known, self._taken_s = {key.prefix: key for key in keys}, asked_s
        await asyncio.to_thread(self._save, _Snapshot(now, keys))

    async def find(self, prefix: str) -> ApiKey | None:
        """See Keys; Unavailable where the store is away and the snapshot does not know: the key may be a new one."""
        try:
            return await self._keys.find(prefix)
        except Unavailable:
            if self.age_s is None or prefix not in self._known:
                raise
            return self._known[prefix]

    async def add(self, key: ApiKey) -> None:
        """See Keys."""
        await self._keys.add(key)

    async def all(self, app: AppId | None = None) -> list[ApiKey]:
        """See Keys."""
        return await self._keys.all(app)

    async def revoke(self, prefix: str, at: Instant) -> bool:
        """See Keys."""
        return await self._keys.revoke(prefix, at)

    async def replace(self, prefix: str, key: ApiKey, until: Instant) -> bool:
        """See Keys."""
        return await self._keys.replace(prefix, key, until)

    async def touch(self, uses: Mapping[str, Instant]) -> None:
        """See Keys."""
        await self._keys.touch(uses)

    def _load(self) -> None:
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=_Snapshot)
        except (OSError, msgspec.MsgspecError):
            return  # none, or one that cannot be read: the next look makes another
        self._known = {key.prefix: key for key in found.keys}
        self._taken_s = self._clock.monotonic() - max(0, self._clock.now() - found.taken_at) / 1_000

    def _save(self, snapshot: _Snapshot) -> None:
        """Save the snapshot whole or not at all, each process by itself."""
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(snapshot))
        draft.replace(self._path)
