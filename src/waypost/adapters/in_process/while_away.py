"""A limiter that goes on counting where the shared one is away."""

from __future__ import annotations

from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain.errors import Unavailable
from waypost.domain.limits import Granted, Limit, Wait
from waypost.ports.clock import Clock
from waypost.ports.limiter import Limiter


class LocalWhileAway:
    """A limiter that counts in another one, and while that is away, in this process alone."""

    def __init__(self, shared: Limiter, clock: Clock) -> None:
        self._shared = shared
        self._own = MemoryLimiter(clock)

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """See Limiter."""
        try:
            return await self._shared.take(name, limit, n)
        except Unavailable:
            return await self._own.take(name, limit, n)
