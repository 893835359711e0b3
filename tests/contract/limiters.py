"""Limiters under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from tests.contract.clock import StoppedClock
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.adapters.mapped.limiter import MappedLimiter
from waypost.ports.limiter import Limiter
from waypost.stores.redis.limiter import RedisLimiter
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent


class LimiterUnderTest(Protocol):
    """One engine's limiter, and time that goes by when a test says so."""

    @property
    def limiter(self) -> Limiter:
        """The limits."""
        ...

    async def later(self, name: str, ms: int) -> None:
        """Let time go by for a name."""
        ...


class LocalLimiterUnderTest:
    """In memory, or in a mapped file where there is a *path*."""

    def __init__(self, path: Path | None = None) -> None:
        self._clock = StoppedClock()
        self.limiter = MemoryLimiter(self._clock) if path is None else MappedLimiter(path, self._clock)

    async def later(self, name: str, ms: int) -> None:
        """See LimiterUnderTest."""
        self._clock.advance(ms)


class RedisLimiterUnderTest:
    """On a server, whose clock goes on by itself: limits are chosen so that this does not matter."""

    def __init__(self, wire: SinglePrimary) -> None:
        self._wire = wire
        self.limiter = RedisLimiter(wire, "waypost:")

    async def later(self, name: str, ms: int) -> None:
        """What was noted now was noted so much earlier."""
        shifted = [("HINCRBYFLOAT", f"waypost:limit:{name}", field, -ms) for field in ("at", "since")]
        await self._wire.execute(shifted)


@asynccontextmanager
async def redis_limiter_under_test(url: str) -> AsyncIterator[RedisLimiterUnderTest]:
    """With nothing taken."""
    wire = SinglePrimary(RedisSettings(url=url, timeout_s=10), Silent())
    await wire.start()
    yield RedisLimiterUnderTest(wire)
    await wire.stop()
