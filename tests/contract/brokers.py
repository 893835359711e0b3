"""Schedules under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from tests.memory.broker import MemorySchedule
from waypost.domain.time import MINUTE_MS
from waypost.ports.broker import Schedule
from waypost.stores.redis.schedule import RedisSchedule
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

CLAIM_MS = MINUTE_MS


class SchedulerUnderTest(Protocol):
    """One engine's due times."""

    @property
    def schedule(self) -> Schedule:
        """The due times."""
        ...


class MemoryScheduleUnderTest:
    """In memory."""

    def __init__(self) -> None:
        self.schedule = MemorySchedule(CLAIM_MS)


class RedisScheduleUnderTest:
    """On a server."""

    def __init__(self, wire: SinglePrimary) -> None:
        self.schedule = RedisSchedule(wire, "waypost:", CLAIM_MS)


@asynccontextmanager
async def redis_schedule_under_test(url: str) -> AsyncIterator[RedisScheduleUnderTest]:
    """With nothing in it."""
    wire = SinglePrimary(RedisSettings(url=url, timeout_s=10), Silent())
    await wire.start()
    yield RedisScheduleUnderTest(wire)
    await wire.stop()
