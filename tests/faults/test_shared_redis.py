"""What Waypost shares through Redis, while a primary is replaced and on a cluster that loses a node."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from scripts.services.redis import RedisCluster, RedisSentinel
from tests.adapters.redis.noted import Noted
from tests.contract.bench import by_content
from tests.contract.stores import MemoryUnderTest
from tests.contract.test_holds import again, plain, said
from tests.shows import shows
from tests.survival import Survived
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.limits import Granted, TokenBucket
from waypost.domain.notification import Lane, Notification
from waypost.domain.time import Instant
from waypost.ports.broker import Entry
from waypost.ports.work import Duplicate
from waypost.stores.redis.broker import RedisPublisher
from waypost.stores.redis.check import look
from waypost.stores.redis.cluster import ClusterClient
from waypost.stores.redis.commands import Redis, RedisAway
from waypost.stores.redis.devices import CachedDevices
from waypost.stores.redis.holds import RedisHolds
from waypost.stores.redis.limiter import RedisLimiter
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Event, Metric

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]

APP = AppId("demo")
USERS = [(APP, UserId(f"u{n}")) for n in range(50)]
FAILOVER_S = 15
"""Requirement S1-122."""
NOW = Instant(1_800_000_000_000)


class Registrations:
    """Users who register one device after the other, and what a look at the registry must say."""

    def __init__(self, redis: Redis, settings: RedisSettings, noted: Noted) -> None:
        self.cache = CachedDevices(MemoryUnderTest().devices, redis, settings, noted)
        self.rounds = 0

    async def go_on(self) -> None:
        """One change and one look for everybody; whatever Redis does, nothing else may be seen."""
        self.rounds += 1
        for app, user in USERS:
            said = Registration(app, user, DeviceId("phone"), Platform("ios"), f"{user} {self.rounds}")
            await self.cache.upsert(said, Instant(NOW + self.rounds), 0)
        for _ in range(2):
            found = await self.cache.for_users(USERS)
            assert [[each.token for each in devices] for devices in found] == [
                [f"{user} {self.rounds}"] for _, user in USERS
            ]


@shows("S1-122")
@pytest.mark.survives(
    "the primary killed, sentinels choose another", on="cache of devices", so="never wrong, back within 15 s"
)
async def test_the_cache_follows_the_sentinels_to_the_new_primary(
    redis_sentinel: RedisSentinel, survived: Survived
) -> None:
    sentinels = tuple(f"127.0.0.1:{port}" for port in redis_sentinel.ports[redis_sentinel.size :])
    settings = RedisSettings(url=f"redis://{redis_sentinel.NAME}/0", sentinels=sentinels)
    noted = Noted()
    wire = SinglePrimary(settings, noted)
    await wire.start()
    world = Registrations(wire, settings, noted)
    await world.go_on()
    assert Event.REDIS_AWAY not in noted.events
    killed = redis_sentinel.primary()
    killed.kill()
    began_s = asyncio.get_running_loop().time()
    while Event.REDIS_BACK not in noted.events:
        await world.go_on()
        await asyncio.sleep(0.01)  # nothing tells when there is another primary
    took_s = asyncio.get_running_loop().time() - began_s
    for _ in range(10):
        await world.go_on()
    assert redis_sentinel.primary() is not killed
    redis_sentinel.start(killed.number)
    for _ in range(10):
        await world.go_on()
    await wire.stop()
    bypassed = noted.counts[Metric.CACHE_LOOKUPS, "devices bypassed"]
    assert bypassed > 0
    assert took_s < FAILOVER_S
    survived(looked_up=2 * len(USERS) * world.rounds, wrong=0, bypassed=bypassed, back_after=f"{took_s:.1f} s")


@shows("S1-134", "S1-142")
@pytest.mark.survives(
    "a node of a Redis ClusterClient killed, and back",
    on="cache, keys, limits, streams",
    so="never wrong, recovery by itself",
)
async def test_everything_shared_works_on_a_cluster_that_loses_a_node_and_gets_it_back(
    redis_cluster: RedisCluster, survived: Survived
) -> None:
    """Two instances, as two processes have them: keys lie on all nodes, those of one lane together."""
    settings = RedisSettings(url=redis_cluster.url, cluster=True)
    noted = Noted()
    one, two = (ClusterClient(settings, noted) for _ in range(2))
    await one.start()
    await two.start()
    try:
        assert (await look(one)).append_only
        await held_once(one, two)
        await limited(one, two)
        await carried_once(one, two)
        world = Registrations(one, settings, noted)
        await world.go_on()
        redis_cluster.kill(2)
        while Event.REDIS_AWAY not in noted.events:
            await world.go_on()
        await world.go_on()
        redis_cluster.up()
        while Event.REDIS_BACK not in noted.events:
            await world.go_on()
            await asyncio.sleep(0.01)  # nothing tells when the cluster is whole
        await world.go_on()
    finally:
        await one.stop()
        await two.stop()
    bypassed = noted.counts[Metric.CACHE_LOOKUPS, "devices bypassed"]
    looked_up = 2 * len(USERS) * world.rounds
    survived(looked_up=looked_up, wrong=0, bypassed=bypassed)


@shows("S1-134")
@pytest.mark.survives(
    "all nodes of a Redis ClusterClient killed under load, and back", on="dedup keys", so="no window forgotten"
)
async def test_a_cluster_that_crashes_forgets_no_window(redis_cluster: RedisCluster, survived: Survived) -> None:
    """Requirement S1-134: each node with its append-only file; what was confirmed is a duplicate afterwards."""
    noted = Noted()
    cluster = ClusterClient(RedisSettings(url=redis_cluster.url, cluster=True), noted)
    await cluster.start()
    holds = RedisHolds(cluster, "waypost:")
    confirmed: list[Notification] = []
    grown = asyncio.Condition()

    async def claim(caller: int) -> None:
        for n in itertools.count():
            made = said(f"crash {caller} {n}")
            try:
                await holds.hold([plain(made)])
                await holds.confirm([(by_content(made), made.id)])
            except RedisAway:
                await asyncio.sleep(0.01)  # it says so at once, as long as it is away
                continue
            confirmed.append(made)
            async with grown:
                grown.notify_all()

    async def more(count: int) -> None:
        wanted = len(confirmed) + count
        async with grown:
            await grown.wait_for(lambda: len(confirmed) >= wanted)

    callers = [asyncio.create_task(claim(caller)) for caller in range(8)]
    try:
        await more(500)
        for node in redis_cluster.nodes:
            node.kill()
        before = len(confirmed)
        redis_cluster.up()
        await more(500)
    finally:
        for each in callers:
            each.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    forgotten = 0
    for page in range(0, len(confirmed), 100):
        made = confirmed[page : page + 100]
        answers = await holds.hold([plain(again(each)) for each in made])
        forgotten += sum(answer != Duplicate(each.id) for each, answer in zip(made, answers, strict=True))
    await cluster.stop()
    survived(confirmed_before_the_crash=before, confirmed=len(confirmed), forgotten=forgotten)
    assert forgotten == 0


async def held_once(*instances: Redis) -> None:
    """Requirement S1-142: what is said to two instances at once is accepted by one."""
    doors = [RedisHolds(each, "waypost:") for each in instances]
    made = [said(f"cluster {n}") for n in range(50)]
    answers = await asyncio.gather(*(door.hold([plain(again(each))]) for each in made for door in doors))
    accepted = [answer for (answer,) in answers if isinstance(answer, bytes)]
    assert len(accepted) == len(set(accepted)) == 50
    await doors[0].confirm([(by_content(each), each.id) for each in made])
    repeats = await doors[1].hold([plain(again(each)) for each in made])
    assert repeats == [Duplicate(each.id) for each in made]


async def limited(*instances: Redis) -> None:
    """Together they get what there is."""
    bucket = TokenBucket(40, 0.001)
    takers = [RedisLimiter(each, "waypost:").take("b", bucket) for each in instances * 25]
    assert sum(isinstance(answer, Granted) for answer in await asyncio.gather(*takers)) == 40


async def carried_once(*instances: Redis) -> None:
    """Entries of two apps that are published."""
    apps = (APP, AppId("shop"))
    for lane in (Lane.HIGH, Lane.BULK):
        entries = [Entry(app, USERS[0][1], b"%d" % n) for n in range(100) for app in apps]
        for publisher, half in zip((RedisPublisher(each, "waypost:") for each in instances), (0, 1), strict=True):
            await publisher.publish(lane, entries[half::2])
        lengths = await instances[0].execute([("XLEN", f"waypost:{{{lane}}}:{app}") for app in apps])
        assert lengths == [100, 100]
