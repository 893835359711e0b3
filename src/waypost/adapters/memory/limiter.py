"""Limits of one process."""

from __future__ import annotations

from typing import Final

from waypost.domain.limits import FixedWindow, Granted, Level, Limit, TokenBucket, Wait, take
from waypost.domain.time import SECOND_MS
from waypost.ports.clock import Clock

LEVELS: Final = 10_000
"""Names after which those that nobody has used for so long that they are full again are forgotten."""


class MemoryLimiter:
    """See Limiter; its windows begin by the wall clock, its buckets refill by it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._levels: dict[str, tuple[Level, Limit]] = {}

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """See Limiter."""
        now = self._clock.now()
        known = self._levels.get(name)
        level, answer = take(limit, known and known[0], n, now)
        if known is None and len(self._levels) >= LEVELS:
            self._levels = {each: kept for each, kept in self._levels.items() if _is_used(*kept, now)}
        self._levels[name] = (level, limit)
        return answer


def _is_used(level: Level, limit: Limit, now_ms: float) -> bool:
    match limit:
        case TokenBucket():
            return level.left + (now_ms - level.at_ms) * limit.refill_per_s / SECOND_MS < limit.size
        case FixedWindow():
            return now_ms < level.at_ms + limit.window_ms
