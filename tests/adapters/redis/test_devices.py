"""The cache of devices: what is asked of the registry, what a change removes, and what holds while Redis is away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import msgspec
import pytest

from scripts.services.redis import Redis
from tests.adapters.redis.noted import Noted
from tests.contract.registries import Keyspace, cassandra_under_test
from tests.contract.stores import MemoryUnderTest
from tests.memory.devices import MemoryDevices
from tests.shows import shows
from waypost.domain.device import Device, Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import HOUR_MS, Instant, later
from waypost.ports.devices import Devices, Eviction, Use
from waypost.stores.redis import devices as cache_module
from waypost.stores.redis.commands import Command, RedisAway, Reply
from waypost.stores.redis.devices import CachedDevices
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Event, Metric

pytestmark = pytest.mark.asyncio

APP = AppId("demo")
ANN = (APP, UserId("ann"))
BOB = (APP, UserId("bob"))
NOW = Instant(1_800_000_000_000)
SETTINGS = RedisSettings(url="redis://unused")


class Registry(MemoryDevices):
    """A registry in memory that notes what it is asked, and can be slow to answer."""

    def __init__(self) -> None:
        super().__init__(MemoryUnderTest()._store)
        self.asked: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.has_read = asyncio.Event()

    async def for_users(self, users: Sequence[tuple[AppId, UserId]]) -> list[list[Device]]:
        """As it was when it was read, however late the answer comes."""
        self.asked.append([user for _, user in users])
        found = await super().for_users(users)
        self.has_read.set()
        await self.gate.wait()
        return found


class Counted:
    """A link that counts round trips."""

    def __init__(self, wire: SinglePrimary) -> None:
        self._wire = wire
        self.trips = 0

    async def start(self) -> None:
        """It has been."""

    async def stop(self) -> None:
        """It will be."""

    async def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """See Redis."""
        self.trips += 1
        return await self._wire.execute(commands)


@pytest.fixture
def registry() -> Registry:
    """Empty."""
    return Registry()


@pytest.fixture
def link(wire: SinglePrimary) -> Counted:
    """Counts."""
    return Counted(wire)


@pytest.fixture
def cache(registry: Registry, link: Counted, noted: Noted) -> CachedDevices:
    """In front of it."""
    return CachedDevices(registry, link, SETTINGS, noted)


async def register(devices: Devices, user: tuple[AppId, UserId], device: str, token: str = "") -> None:
    """A call of one device."""
    said = Registration(*user, DeviceId(device), Platform("ios"), token or f"token of {device}")
    await devices.upsert(said, NOW, 0)


async def names(cache: CachedDevices, *users: tuple[AppId, UserId]) -> list[list[str]]:
    """The device ids of each user."""
    return [[device.device_id for device in devices] for devices in await cache.for_users(users)]


def lookups(noted: Noted) -> dict[str, int]:
    """How many users were found how."""
    return {result: noted.counts[Metric.CACHE_LOOKUPS, f"devices {result}"] for result in ("hit", "miss", "bypassed")}


@shows("S1-36", "S1-114")
async def test_a_second_look_asks_nobody_and_no_devices_are_an_answer_too(
    cache: CachedDevices, registry: Registry, link: Counted, wire: SinglePrimary, noted: Noted
) -> None:
    await register(registry, ANN, "phone")
    before = link.trips
    assert await names(cache, ANN, BOB, ANN) == [["phone"], [], ["phone"]]
    assert link.trips - before == 2, "one to read, one to fill"
    assert await names(cache, BOB, ANN) == [[], ["phone"]]
    assert link.trips - before == 3
    assert registry.asked == [["ann", "bob"]]
    assert lookups(noted) == {"hit": 2, "miss": 2, "bypassed": 0}
    (ttl,) = await wire.execute([("PTTL", "waypost:devices:demo:bob")])
    assert 299_000 < ttl <= 300_000


@shows("S3-70")
async def test_devices_are_kept_for_as_long_as_is_set(registry: Registry, link: Counted, wire: SinglePrimary) -> None:
    """Requirements S3-70: ten minutes, where it is set so; a registration ends it."""
    settings = msgspec.structs.replace(SETTINGS, devices_ttl_s=600)
    cache = CachedDevices(registry, link, settings, Noted())
    await register(registry, ANN, "phone")
    await names(cache, ANN)
    (ttl,) = await wire.execute([("PTTL", "waypost:devices:demo:ann")])
    assert 599_000 < ttl <= 600_000
    await register(cache, ANN, "tablet")
    assert await names(cache, ANN) == [["phone", "tablet"]]


@shows("S1-36")
@pytest.mark.engines
async def test_a_miss_is_read_from_cassandra_and_kept(
    cassandra_hosts: tuple[str, ...], wire: SinglePrimary, noted: Noted
) -> None:
    """Requirement S1-36."""
    async with cassandra_under_test(Keyspace(cassandra_hosts)) as kept:
        cache = CachedDevices(kept.devices, wire, SETTINGS, noted)
        for device, user in (("phone", ANN), ("tablet", ANN), ("watch", BOB)):
            await register(cache, user, device)
        for _ in range(3):
            assert await names(cache, ANN, BOB) == [["phone", "tablet"], ["watch"]]
        assert lookups(noted) == {"hit": 4, "miss": 2, "bypassed": 0}
        assert await cache.for_users([ANN]) == await kept.devices.for_users([ANN])
        await register(cache, BOB, "watch", "token of phone")
        assert await names(cache, ANN, BOB) == [["tablet"], ["watch"]]
    (ttl,) = await wire.execute([("PTTL", "waypost:devices:demo:ann")])
    assert 0 < ttl <= 300_000


async def test_what_is_cached_is_what_was_stored(cache: CachedDevices, registry: Registry) -> None:
    await register(registry, ANN, "phone")
    assert await cache.for_users([ANN]) == await cache.for_users([ANN]) == await registry.for_users([ANN])


@shows("S1-40", "S3-70")
async def test_every_change_shows_at_once_to_every_process(
    cache: CachedDevices, registry: Registry, wire: SinglePrimary, noted: Noted
) -> None:
    other = CachedDevices(registry, wire, SETTINGS, noted)
    await names(other, ANN, BOB)
    await register(cache, ANN, "phone", "t")
    assert await names(other, ANN, BOB) == [["phone"], []]
    await register(cache, BOB, "tablet", "t")
    assert await names(other, ANN, BOB) == [[], ["tablet"]], "the token's previous owner is forgotten as well"
    await cache.evict([Eviction(APP, token_hash("t"), later(NOW, 1))])
    assert await names(other, ANN, BOB) == [[], []]
    await register(cache, BOB, "tablet", "t")
    assert await names(other, BOB) == [["tablet"]]
    await cache.deactivate(*BOB, DeviceId("tablet"))
    assert await names(other, BOB) == [[]]


@shows("S3-70")
async def test_a_late_reader_does_not_bring_back_a_previous_owner(cache: CachedDevices, registry: Registry) -> None:
    await register(registry, ANN, "phone", "t")
    for _ in range(2):  # with nothing known of the user, and with a change known
        registry.gate.clear()
        registry.has_read.clear()
        reader = asyncio.create_task(names(cache, ANN))
        await registry.has_read.wait()
        await register(cache, BOB, "tablet", "t")
        registry.gate.set()
        assert await reader == [["phone"]], "it was so when it was asked"
        assert await names(cache, ANN) == [[]]
        await register(cache, ANN, "phone", "t")


async def test_a_change_whose_caller_goes_away_is_not_forgotten(cache: CachedDevices, registry: Registry) -> None:
    assert await names(cache, ANN) == [[]]
    call = asyncio.create_task(register(cache, ANN, "phone"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    while await registry.of_user(*ANN) == []:  # noqa: ASYNC110 - it gives no other sign
        await asyncio.sleep(0)
    while (seen := await names(cache, ANN)) == [[]]:  # noqa: ASYNC110 - nor does this
        await asyncio.sleep(0)
    assert seen == [["phone"]]


async def test_a_use_shows_in_what_is_cached_and_never_goes_back(cache: CachedDevices, registry: Registry) -> None:
    await register(registry, ANN, "phone")
    await names(cache, ANN)
    for at in (later(NOW, HOUR_MS), NOW):
        await cache.touch([Use(*ANN, DeviceId("phone"), at), Use(*BOB, DeviceId("none"), at)])
        ((device,),) = await cache.for_users([ANN])
        assert device.last_used_at == later(NOW, HOUR_MS)
    assert registry.asked == [["ann"]], "nothing was read again for it"


async def test_what_nobody_understands_is_read_anew(
    cache: CachedDevices, registry: Registry, wire: SinglePrimary
) -> None:
    await register(registry, ANN, "phone")
    for unknown in (b"\xc1", b"\x91\x91\x01", b"\x80"):
        await wire.execute([("HSET", "waypost:devices:demo:ann", "d", unknown)])
        assert await names(cache, ANN) == [["phone"]]


@shows("S1-118")
async def test_warming_makes_hits_for_the_whole_ttl(
    cache: CachedDevices, registry: Registry, wire: SinglePrimary, noted: Noted
) -> None:
    await register(registry, ANN, "phone")
    await names(cache, ANN)
    await wire.execute([("PEXPIRE", "waypost:devices:demo:ann", "1000")])
    assert await cache.warm([ANN, BOB, ANN]) == 1
    (ttl,) = await wire.execute([("PTTL", "waypost:devices:demo:ann")])
    assert ttl > 299_000
    noted.counts.clear()
    assert await names(cache, ANN, BOB) == [["phone"], []]
    assert lookups(noted) == {"hit": 2, "miss": 0, "bypassed": 0}


async def test_without_redis_the_registry_answers_and_nothing_stale_comes_back_with_it(
    cache: CachedDevices, registry: Registry, server: Redis, noted: Noted
) -> None:
    """The server keeps over its restart what was cached before: a change in between must end it."""
    await register(registry, ANN, "phone", "t")
    assert await names(cache, ANN) == [["phone"]]
    server.stop()
    await noted.saw(Event.REDIS_AWAY)
    await register(cache, BOB, "tablet", "t")
    assert await names(cache, ANN, BOB) == [[], ["tablet"]]
    assert lookups(noted)["bypassed"] == 2
    with pytest.raises(RedisAway):
        await cache.warm([ANN])
    server.start()
    assert "hash" in server.ask(server.node(1), "TYPE waypost:devices:demo:ann")
    await noted.saw(Event.REDIS_BACK)
    assert await names(cache, ANN, BOB) == [[], ["tablet"]]
    assert lookups(noted) == {"hit": 0, "miss": 3, "bypassed": 2}


async def test_what_is_owed_to_redis_is_bounded(
    cache: CachedDevices, server: Redis, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "OWED_LIMIT", 10)
    server.stop()
    await noted.saw(Event.REDIS_AWAY)
    for n in range(20):
        await register(cache, (APP, UserId(f"u{n}")), f"d{n}")
    assert [user for _, user in cache._owed] == [f"u{n}" for n in range(10, 20)]
    server.start()
    await noted.saw(Event.REDIS_BACK)
    await names(cache, ANN)
    assert not cache._owed


@shows("S1-37", "S1-132")
async def test_of_clustered_traffic_nineteen_in_twenty_are_hits(
    cache: CachedDevices, registry: Registry, noted: Noted
) -> None:
    """Requirement S1-37: users whose notifications come in bunches, some of them registering a device meanwhile."""
    chance = random.Random(7)
    for user in range(2_000):
        await register(registry, (APP, UserId(f"u{user}")), f"d{user}")
    for bunch in range(20):
        active = [(APP, UserId(f"u{bunch * 100 + n}")) for n in range(100)]
        for _ in range(25):
            await cache.for_users([chance.choice(active) for _ in range(100)])
            await cache.for_users([user for user in active if chance.random() < 0.8])
            await register(cache, chance.choice(active), f"new{chance.random()}")
    found = lookups(noted)
    rate = found["hit"] / (found["hit"] + found["miss"])
    assert 0.94 < rate < 0.98, found


@shows("S1-118")
async def test_after_warming_a_spike_asks_the_registry_a_tenth_as_often(
    cache: CachedDevices, registry: Registry, noted: Noted
) -> None:
    """Requirement S1-118: a campaign to users of whom nineteen in twenty are on the list that was warmed."""
    users = [(APP, UserId(f"u{n}")) for n in range(2_000)]
    for user in users:
        await register(registry, user, f"d{user[1]}")
    listed = users[: len(users) * 19 // 20]

    async def spike() -> int:
        registry.asked.clear()
        for start in range(0, len(users), 500):
            await cache.for_users(users[start : start + 500])
        return sum(map(len, registry.asked))

    cold = await spike()
    await cache._redis.execute([("FLUSHDB",)])
    assert await cache.warm(listed) == len(listed)
    assert (cold, await spike()) == (len(users), len(users) - len(listed))
