"""Brokers and schedules under test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from tests.contract.clock import StoppedClock
from waypost.adapters.memory.broker import MemoryBroker, MemoryLanes, MemorySchedule
from waypost.adapters.redis.broker import GROUP, RedisBroker
from waypost.adapters.redis.schedule import RedisSchedule
from waypost.adapters.redis.settings import RedisSettings
from waypost.adapters.redis.wire import Wire
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS
from waypost.ports.broker import Broker, Schedule
from waypost.telemetry import Silent

APPS = (AppId("demo"), AppId("shop"))
LEASE_MS = MINUTE_MS
CLAIM_MS = MINUTE_MS


class BrokerUnderTest(Protocol):
    """One engine's broker with its readers."""

    async def reader(self) -> Broker:
        """One more process, which has read once."""
        ...

    async def arrived(self) -> None:
        """Wait until all that was published can be read."""
        ...

    async def give_up(self, reader: Broker) -> None:
        """Make the broker believe that this reader is no more."""
        ...

    async def stored(self) -> int:
        """How many entries there are that would be handed out when all readers are given up."""
        ...


class SchedulerUnderTest(Protocol):
    """One engine's due times."""

    @property
    def schedule(self) -> Schedule:
        """The due times."""
        ...


class MemoryBrokerUnderTest:
    """In memory."""

    def __init__(self) -> None:
        self._clock = StoppedClock()
        self._lanes = MemoryLanes(self._clock, LEASE_MS)
        self.schedule = MemorySchedule(CLAIM_MS)

    async def reader(self) -> MemoryBroker:
        """See BrokerUnderTest."""
        return MemoryBroker(self._lanes)

    async def arrived(self) -> None:
        """See BrokerUnderTest: at once."""

    async def give_up(self, reader: Broker) -> None:
        """See BrokerUnderTest: leases end by time, everybody's."""
        self._clock.advance(LEASE_MS)

    async def stored(self) -> int:
        """See BrokerUnderTest."""
        return sum(map(len, self._lanes.entries.values()))


class RedisBrokerUnderTest:
    """On a server."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.schedule = RedisSchedule(wire, "waypost:", CLAIM_MS)

    async def reader(self) -> RedisBroker:
        """See BrokerUnderTest."""
        return RedisBroker(self.wire, "waypost:", APPS, str(uuid.uuid4()), LEASE_MS)

    async def arrived(self) -> None:
        """See BrokerUnderTest: at once."""

    async def give_up(self, reader: Broker) -> None:
        """The server's own clock cannot be moved, but it can be told how long something has been idle."""
        for stream in self._streams():
            (held,) = await self.wire.execute([("XPENDING", stream, GROUP, "-", "+", 1_000)])
            aged = [("XCLAIM", stream, GROUP, who, 0, id_, "IDLE", LEASE_MS, "JUSTID") for id_, who, *_ in held]
            await self.wire.execute(aged) if aged else None

    async def stored(self) -> int:
        """See BrokerUnderTest."""
        return sum(await self.wire.execute([("XLEN", stream) for stream in self._streams()]))

    @staticmethod
    def _streams() -> list[str]:
        return [f"waypost:{{{Lane.HIGH}}}:{app}" for app in APPS]


@asynccontextmanager
async def redis_broker_under_test(url: str) -> AsyncIterator[RedisBrokerUnderTest]:
    """With nothing in it."""
    wire = Wire(RedisSettings(url=url, timeout_s=10), Silent())
    await wire.start()
    yield RedisBrokerUnderTest(wire)
    await wire.stop()
