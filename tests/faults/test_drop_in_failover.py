"""The primary under the drop-in's stream is killed and a replica takes over, or all of it is emptied.

What producers added and only the old primary had is lost, as with any reader of that stream.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from redis.exceptions import RedisError

from scripts.services.redis import RedisSentinel
from scripts.services.service import HOST, Node
from tests import proxy
from tests.adapters.stream.owner import GROUP, LOG, STREAM, TOKENS, Owner, until
from tests.faults.test_redis_failover import comes_back
from tests.journeys.lab import Lab
from tests.journeys.test_drop_in import JOBS, Process, add_jobs, copies_of, environment_of
from tests.survival import Survived

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Harm:
    """What is done to Redis."""

    name: str
    required: str
    is_behind: bool = False
    is_emptied: bool = False


HARMS = (
    Harm("Redis failed over, replicas in step", "no loss"),
    Harm("Redis failed over, replicas behind", "nothing lost that a replica had", is_behind=True),
    Harm("Redis emptied under load", "goes on with what is added then", is_emptied=True),
)
EACH = [
    pytest.param(each, id=each.name, marks=pytest.mark.survives(each.name, on="drop-in", so=each.required))
    for each in HARMS
]


@dataclass
class Producers:
    """Those who add jobs to the primary of the moment, and whose users they are for."""

    postgres_url: str
    redis: RedisSentinel
    rng: random.Random
    told: dict[int, str] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)

    def begin(self) -> None:
        """Tables, users of one device each, a stream and its group."""
        owner = self.owner()
        owner.redis.flushdb()
        owner.sql(TOKENS)
        owner.sql(LOG)
        owner.redis.xgroup_create(STREAM, GROUP, 0, mkstream=True)
        self.users = {f"user-{n}": [owner.device(f"user-{n}")] for n in range(12)}

    def owner(self) -> Owner:
        """The stream as it is on the primary now."""
        return Owner(self.postgres_url, f"redis://{HOST}:{self.redis.port(self.redis.primary())}/0")

    def add(self, *, replicas: int) -> None:
        """Add jobs; return once so many replicas have them."""
        owner = self.owner()
        for _ in range(4):
            add_jobs(owner, self.told, self.users, self.rng)
        assert owner.redis.wait(replicas, 0) >= replicas
        owner.close()

    async def half_read(self) -> None:
        """Wait until half of what was added last has been handed out."""
        owner = self.owner()
        await until(lambda: owner.unread() < JOBS // 2)
        owner.close()

    async def all_ended(self, moving: proxy.Proxy) -> None:
        """Wait until the stream has nothing that is open; the address follows, for Sentinels may promote twice."""

        def is_over() -> bool:
            if (now := (HOST, self.redis.port(self.redis.primary()))) != moving.server:
                moving.move(*now)
            owner = self.owner()
            with suppress(RedisError, ValueError):  # there is no group until somebody reads
                return owner.unread() == 0 and owner.pending() == {}
            owner.close()
            return False

        await until(is_over, 300)


@pytest.mark.parametrize("harm", EACH)
async def test_the_drop_in_goes_on_with_what_the_new_primary_has(
    harm: Harm, redis_sentinel: RedisSentinel, postgres_url: str, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Its one address moves with the primary, as behind a load balancer: it has no variable for Sentinels."""
    producers = Producers(postgres_url, redis_sentinel, rng)
    producers.begin()
    async with delivering(producers, tmp_path) as (moving, lab, session):
        producers.add(replicas=2)
        await producers.half_read()
        safe = set(producers.told)
        await harmed(redis_sentinel, harm, producers, moving)
        if not harm.is_behind and not harm.is_emptied:
            safe = set(producers.told)
        after = len(producers.told)
        producers.add(replicas=0)
        safe |= set(range(after, len(producers.told)))
        await producers.all_ended(moving)
        copies = await copies_of(session, lab)
    owner = producers.owner()
    rows = Counter(row["payload"]["number"] for row in owner.log())
    statuses = Counter(row["status"] for row in owner.log())
    owner.close()
    lost = producers.told.keys() - {number for number, _ in copies}
    survived(
        accepted=len(producers.told),
        sent=len(copies),
        lost=len(lost),
        twice=sum(n - 1 for n in copies.values()),
        rows_twice=sum(n - 1 for n in rows.values()),
    )
    assert statuses["pending"] == 0
    assert harm.is_emptied or not lost & safe
    assert lost & safe <= set(range(after))


@asynccontextmanager
async def delivering(
    producers: Producers, folder: Path
) -> AsyncIterator[tuple[proxy.Proxy, Lab, aiohttp.ClientSession]]:
    """Two processes that reach the primary by an address that can be moved."""
    at = producers.redis.port(producers.redis.primary())
    async with proxy.before(HOST, at) as moving, aiohttp.ClientSession() as session:
        lab = Lab(folder / "lab", session)
        await lab.start()
        environment = environment_of(producers.owner(), lab) | {"REDIS_URL": f"redis://{moving.address}/0"}
        processes = [Process(folder, environment) for _ in range(2)]
        try:
            yield moving, lab, session
            for process in processes:
                assert await process.stop() == (0, b"")
        finally:
            for process in processes:
                process.kill()
            lab.end()


async def harmed(redis: RedisSentinel, harm: Harm, producers: Producers, moving: proxy.Proxy) -> None:
    """Do it while jobs come in, and move the address."""
    with redis.behind() if harm.is_behind else nullcontext(redis.primary()) as primary:
        producers.add(replicas=0 if harm.is_behind else 2)
        await producers.half_read()
        if harm.is_emptied:
            redis.ask(primary, "FLUSHALL")
            return
        primary.kill()
        await until(lambda: is_replaced(redis, primary))
        moving.move(HOST, redis.port(redis.primary()))
    await comes_back(redis, primary)


def is_replaced(redis: RedisSentinel, killed: Node) -> bool:
    """Whether another one takes writes."""
    now = redis.primary()
    return now is not killed and "role:master" in redis.ask(now, "INFO replication")
