"""A registry of devices under test, beside the stores that have one."""

from __future__ import annotations

import asyncio
import gc
import socket
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

from tests.contract.clock import StoppedClock
from waypost.ports.devices import Devices
from waypost.stores.cassandra.devices import CassandraDevices
from waypost.stores.cassandra.schema import migrate
from waypost.stores.cassandra.session import CassandraCluster
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.redis.devices import CachedDevices
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

TABLES = ("device", "token_owner", "feed")
PATIENCE_S = 20.0
"""Seconds for a request: nothing here is about a cluster that is slow, such as on a machine that stands still."""


class RegistryUnderTest(Protocol):
    """One engine's registry, and the time that its tests go by."""

    clock: StoppedClock

    @property
    def devices(self) -> Devices:
        """The registry."""
        ...


class CassandraUnderTest:
    """The registry on a Cassandra node."""

    def __init__(self, settings: CassandraSettings) -> None:
        self.clock = StoppedClock()
        self.devices = CassandraDevices(settings, clock=self.clock)


class CachedUnderTest:
    """A registry behind its cache in Redis."""

    def __init__(self, registry: RegistryUnderTest, settings: RedisSettings, wire: SinglePrimary) -> None:
        self.clock = registry.clock
        self.devices = CachedDevices(registry.devices, wire, settings, Silent())


@asynccontextmanager
async def cached_under_test(registry: RegistryUnderTest, url: str) -> AsyncIterator[CachedUnderTest]:
    """The registry, with nothing cached."""
    settings = RedisSettings(url=url, timeout_s=10)
    wire = SinglePrimary(settings, Silent())
    await wire.start()
    yield CachedUnderTest(registry, settings, wire)
    await wire.stop()


class Keyspace:
    """One for all tests of a process, since tables take seconds to make."""

    def __init__(self, hosts: Sequence[str], name: str | None = None) -> None:
        addresses, ports = zip(*(host.split(":") for host in hosts), strict=True)
        name = name or f"waypost_{uuid.uuid4().hex[:16]}"
        self.settings = CassandraSettings(
            hosts=addresses,
            port=int(ports[0]),
            keyspace=name,
            replication_factor=1,
            request_timeout_s=PATIENCE_S,
        )
        self._is_migrated = False

    async def empty(self) -> CassandraSettings:
        """Every table, with nothing in it."""
        if not self._is_migrated:
            await migrate(self.settings)
            self._is_migrated = True
            return self.settings
        session = await CassandraCluster(self.settings).connect()
        await asyncio.gather(*(session.execute(f"TRUNCATE {self.settings.keyspace}.{table}") for table in TABLES))
        await session.close()
        return self.settings


@asynccontextmanager
async def cassandra_under_test(keyspace: Keyspace) -> AsyncIterator[CassandraUnderTest]:
    """The registry with nothing in it."""
    with wake_ups_closed():
        opened = CassandraUnderTest(await keyspace.empty())
        yield opened
        await opened.devices.close()


@contextmanager
def wake_ups_closed() -> Iterator[None]:
    """Close what the driver leaves open as long as its event loop is there, which in the product is always."""
    yield
    loop = asyncio.get_running_loop()
    drivers = (each for each in gc.get_objects() if str(type(each).__module__).startswith("acsylla."))
    ends = {end for driver in drivers for end in gc.get_referents(driver) if isinstance(end, socket.socket)}
    for end in ends:
        if end.fileno() >= 0:
            loop.remove_reader(end)
            end.close()
