"""Three nodes that each hold all devices: the registry goes on without one of them, and is read without two."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from scripts.services.cassandra import Cassandra
from tests.contract.registries import wake_ups_closed
from tests.journeys.balance import balance
from tests.journeys.harness import running, until
from tests.journeys.load import called
from tests.shows import shows
from tests.survival import Survived
from waypost.domain.device import Platform, Registration
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import Instant
from waypost.stores.cassandra.devices import CassandraDevices
from waypost.stores.cassandra.schema import migrate
from waypost.stores.cassandra.settings import CassandraSettings

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(900)]
APP = AppId("demo")
MOVED = "SELECT bytes_received FROM system_views.streaming"
USERS = [UserId(f"user-{n}") for n in range(40)]


@pytest_asyncio.fixture
async def registry(cassandra_three: Cassandra) -> AsyncIterator[CassandraDevices]:
    """On three nodes."""
    async with registry_on(cassandra_three) as opened:
        yield opened


@asynccontextmanager
async def registry_on(nodes: Cassandra) -> AsyncIterator[CassandraDevices]:
    """A registry with one device of each user."""
    hosts = tuple(nodes.address(node) for node in nodes.nodes)
    settings = CassandraSettings(hosts=hosts, port=nodes.ports[0], keyspace=f"faults_{uuid.uuid4().hex[:16]}")
    with wake_ups_closed():
        await migrate(settings)
        opened = CassandraDevices(settings)
        for user in USERS:
            await register(opened, user)
        yield opened
        await opened.close()


class Load:
    """Looks up all users and registers one of them again, in turn, until the block ends."""

    def __init__(self, registry: CassandraDevices) -> None:
        self._registry = registry
        self.counts = Counter(read=0, written=0, refused=0)

    async def run(self) -> None:
        """Go on whatever comes."""
        for user in itertools.cycle(USERS):
            try:
                found = await self._registry.for_users([(APP, user) for user in USERS])
                assert [len(devices) for devices in found] == [1] * len(USERS)
                self.counts["read"] += len(USERS)
                await register(self._registry, user)
                self.counts["written"] += 1
            except Unavailable:
                self.counts["refused"] += 1

    async def grown(self) -> None:
        """Wait for a hundred more registrations."""
        aim = self.counts["written"] + 100

        async def is_there() -> bool:
            return self.counts["written"] >= aim

        await until(is_there, "a hundred registrations", deadline_s=120)


@shows("S1-34", "S1-124")
@pytest.mark.survives("a node of three killed, and back", on="cassandra", so="reads and writes go on")
async def test_a_killed_node_takes_no_read_and_no_write_with_it(
    cassandra_three: Cassandra, registry: CassandraDevices, survived: Survived
) -> None:
    """Neither while it dies nor while it is away, nor as it comes back."""
    load = Load(registry)
    running = asyncio.create_task(load.run())
    await load.grown()
    await asyncio.to_thread(cassandra_three.kill, 2)
    await load.grown()
    await asyncio.to_thread(cassandra_three.start, 2)
    await load.grown()
    assert not running.done()
    running.cancel()
    survived(**load.counts)
    assert load.counts["refused"] == 0


@shows("S1-124")
@pytest.mark.survives("two nodes of three killed, one back", on="cassandra", so="reads go on, a registration 503")
async def test_one_node_of_three_still_answers_reads(
    cassandra_three: Cassandra, registry: CassandraDevices, survived: Survived
) -> None:
    """A registration needs two of them: it is refused, and goes through when one is back. Who is away is found out."""
    await registry.nodes.look()
    await asyncio.to_thread(cassandra_three.kill, 2)
    await asyncio.to_thread(cassandra_three.kill, 3)
    await registry.nodes.look()
    assert len(registry.nodes._away) == 2
    found = await registry.for_users([(APP, user) for user in USERS])
    assert [len(devices) for devices in found] == [1] * len(USERS)
    with pytest.raises(Unavailable):
        await register(registry, USERS[0])
    await asyncio.to_thread(cassandra_three.start, 3)

    async def is_registered() -> bool:
        with suppress(Unavailable):
            await register(registry, USERS[0])
            return True
        return False

    await until(is_registered, "a registration that two nodes keep", deadline_s=120)
    survived(read=len(USERS), written=1, refused=1)


@shows("S1-106")
@pytest.mark.survives("a node added to three", on="cassandra", so="what is its own moves, no downtime")
async def test_a_node_joins_without_downtime(cassandra_joined: Cassandra, survived: Survived) -> None:
    """It takes half of another's share over; nothing is refused meanwhile."""
    nodes = cassandra_joined
    try:
        async with registry_on(nodes) as registry:
            load = Load(registry)
            running = asyncio.create_task(load.run())
            await load.grown()
            began_s = time.monotonic()
            joined = await asyncio.to_thread(nodes.join)
            took_s = time.monotonic() - began_s
            await load.grown()
            assert not running.done()
            running.cancel()
        moved = sum(int.from_bytes(each) for each in nodes.cql(MOVED, joined))
        assert load.counts["refused"] == 0
        assert moved > 0
        survived(**load.counts, joined_after=f"{took_s:.0f} s", moved=f"{moved / 1024:.0f} KiB")
    finally:
        await asyncio.to_thread(nodes.down)


@pytest.mark.survives("two nodes of three killed, both back", on="sqlite, devices on cassandra", so="no loss")
async def test_a_service_delivers_with_one_node_of_three(
    cassandra_three: Cassandra, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Two workers look devices up all the while; a registration is refused as long as one node is all there is."""
    hosts = [cassandra_three.address(node) for node in cassandra_three.nodes]
    registry = {"hosts": hosts, "port": cassandra_three.ports[0], "keyspace": f"faults_{uuid.uuid4().hex[:16]}"}
    async with running(tmp_path, workers=2, devices="cassandra", cassandra=registry) as service:
        async with called(service, rng, users=30, width=8) as load:
            await load.grown(60)
            for n in (2, 3):
                await asyncio.to_thread(cassandra_three.kill, n)
                await load.grown(60)
            said = {"platform": "ios", "token": "ab" * 32}
            status, refused = await service.ask("PUT", "/v1/devices/user-0/another", said)
            assert (status, refused["code"]) == (503, "storage_busy")
            for n in (2, 3):
                await asyncio.to_thread(cassandra_three.start, n)
            await load.grown(60)
        result = await balance(service, load.ledger, kills=[])
        away = len(service.log("registry.away"))
        survived(**result.row(), refused=sum(load.ledger.refusals.values()), look_ups_failed=away)


async def register(registry: CassandraDevices, user: UserId) -> None:
    """The user's device calls."""
    said = Registration(APP, user, DeviceId("phone"), Platform("ios"), f"token of {user}")
    await registry.upsert(said, Instant(time.time_ns() // 1_000_000), cap=0)
