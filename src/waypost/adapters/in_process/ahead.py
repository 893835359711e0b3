"""Large limits that processes share, taken a hundredth ahead: most requests ask nobody else."""

from __future__ import annotations

from typing import Final

from waypost.domain.limits import FixedWindow, Granted, Limit, Wait
from waypost.ports.clock import Clock
from waypost.ports.limiter import Limiter

LARGE: Final = 10_000
"""The size from which windows are taken ahead of; of smaller ones each single take is asked for."""
PART: Final = 100
NAMES: Final = 10_000
"""The most names of which something is held; then all of it is released."""


class TakenAhead:
    """A limiter that takes portions ahead: never more than the limit; less by what others hold at a window's end.

    Its clock is to agree with that of the limiter behind it: what was taken ahead ends with its window.
    """

    def __init__(self, shared: Limiter, clock: Clock) -> None:
        self._shared = shared
        self._clock = clock
        self._held: dict[str, tuple[int, float]] = {}
        """The amount left of what was taken, and until when it counts, by name."""

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """See Limiter."""
        if not isinstance(limit, FixedWindow) or limit.limit < LARGE or not 1 <= n <= limit.limit:
            return await self._shared.take(name, limit, n)
        while True:
            now = self._clock.now()
            left, ends = self._held.get(name, (0, 0.0))
            if now >= ends:
                left, ends = 0, now - now % limit.window_ms + limit.window_ms
            if left >= n:
                self._held[name] = left - n, ends
                return Granted(left - n)
            more = min(n - left + limit.limit // PART, limit.limit)
            answer = await self._shared.take(name, limit, more)
            if isinstance(answer, Wait):
                more = n - left
                answer = await self._shared.take(name, limit, more)
            if isinstance(answer, Wait):
                return answer
            self._keep(name, more, ends)

    def _keep(self, name: str, more: int, ends: float) -> None:
        """Add what was taken to what is held of the same window: others may have used some of it meanwhile."""
        if len(self._held) >= NAMES:
            self._held.clear()
        left, until = self._held.get(name, (0, ends))
        self._held[name] = (left if until == ends else 0) + more, ends
