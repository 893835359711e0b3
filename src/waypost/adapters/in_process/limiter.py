"""Limits of one process."""

from __future__ import annotations

from typing import Final

from waypost.domain.limits import Granted, Limit, Remaining, Wait, take
from waypost.ports.clock import Clock

LEVELS: Final = 65_536
"""The most names that are known: the one unused for longest is forgotten, as if nothing had been taken."""


class MemoryLimiter:
    """See Limiter; its windows begin by the wall clock, its buckets refill by it."""

    def __init__(self, clock: Clock, levels: int = LEVELS) -> None:
        self._clock = clock
        self._most = levels
        self._levels: dict[str, Remaining] = {}

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """See Limiter."""
        level, answer = take(limit, self._levels.get(name), n, self._clock.now())
        self._levels.pop(name, None)
        if len(self._levels) >= self._most:
            del self._levels[next(iter(self._levels))]
        self._levels[name] = level
        return answer
