"""API keys in memory."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tests.memory.store import MemoryStore
from waypost.domain.ids import AppId
from waypost.domain.time import Instant
from waypost.ports.keys import ApiKey, made_for_ms


class MemoryKeys:
    """Keys by their prefix."""

    def __init__(self, store: MemoryStore) -> None:
        self._keys = store.keys

    async def find(self, prefix: str) -> ApiKey | None:
        """See Keys."""
        return self._keys.get(prefix)

    async def add(self, key: ApiKey) -> None:
        """See Keys."""
        if key.prefix in self._keys:
            raise ValueError(f"the prefix {key.prefix} is in use")
        self._keys[key.prefix] = key

    async def all(self, app: AppId | None = None) -> list[ApiKey]:
        """See Keys."""
        chosen = (key for key in self._keys.values() if app in (None, key.app))
        return sorted(chosen, key=lambda key: (key.created_at, key.prefix))

    async def revoke(self, prefix: str, at: Instant) -> bool:
        """See Keys."""
        key = self._keys.get(prefix)
        if key is None or key.revoked_at is not None:
            return False
        self._keys[prefix] = msgspec.structs.replace(key, revoked_at=at)
        return True

    async def replace(self, prefix: str, key: ApiKey, until: Instant) -> bool:
        """See Keys."""
        old = self._keys.get(prefix)
        if old is None or old.revoked_at is not None:
            return False
        await self.add(key)
        ends = until if old.expires_at is None else min(until, old.expires_at)
        self._keys[prefix] = msgspec.structs.replace(old, expires_at=ends, made_for_ms=made_for_ms(key))
        return True

    async def touch(self, uses: Mapping[str, Instant]) -> None:
        """See Keys."""
        for prefix, at in uses.items():
            key = self._keys.get(prefix)
            if key is not None and (key.last_used_at is None or key.last_used_at < at):
                self._keys[prefix] = msgspec.structs.replace(key, last_used_at=at)
