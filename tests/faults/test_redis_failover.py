"""The primary of Redis is killed under load and a replica takes over, or all of it is emptied: what is lost, what is
sent twice."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.services.redis import RedisSentinel
from scripts.services.service import Node
from tests.journeys.balance import balance, final_stories
from tests.journeys.harness import Json, Service, running, until
from tests.journeys.load import Audience, Entry
from tests.journeys.test_failover import Keyed
from tests.journeys.test_log_stack import log_stack, moves
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
    Harm("Redis failed over, replicas in step", "no loss, nothing accepted twice"),
    Harm("Redis failed over, replicas behind", "what was recorded is still a duplicate", is_behind=True),
    Harm("Redis emptied under load", "what was recorded is still a duplicate", is_emptied=True),
)
EACH = [
    pytest.param(each, id=each.name, marks=pytest.mark.survives(each.name, on="log, dedup: redis", so=each.required))
    for each in HARMS
]


@pytest.mark.parametrize("harm", EACH)
async def test_what_was_recorded_is_a_duplicate_whatever_redis_forgets(
    harm: Harm,
    redis_sentinel: RedisSentinel,
    kafka_bootstrap: str,
    kafka_prefix: str,
    tmp_path: Path,
    rng: random.Random,
    survived: Survived,
) -> None:
    """Callers with keys go on; what was said since is said again at once, and everything once it is recorded."""
    shared = {"url": f"redis://{redis_sentinel.NAME}/0", "sentinels": redis_sentinel.addresses()}
    settings = await log_stack(kafka_bootstrap, kafka_prefix) | {"redis": shared, "dedup": "redis"}
    async with running(tmp_path, workers=2, **settings) as service:
        audience = Audience(service)
        await audience.register(20)
        load = Keyed(service, audience, rng)
        callers = asyncio.create_task(load.run(6, pause_s=0.02))
        await load.grown(100)
        before = set(load.ledger.entries)
        seen = await harmed(redis_sentinel, harm, service, load)
        load.stop()
        await callers
        lately = [entry for id_, entry in load.ledger.entries.items() if id_ not in before]
        at_once = await accepted_again(load, lately)
        await recorded(service, load)
        later = await accepted_again(load, list(load.ledger.entries.values()))
        assert later == 0
        result = await balance(service, load.ledger, kills=moves(service))
        refused = sum(load.ledger.refusals.values())
        survived(**result.row(), **seen, refused=refused, said_again_at_once=len(lately), taken_anew=at_once)
        assert at_once == 0 or seen["keys_forgotten"] > 0


async def harmed(redis: RedisSentinel, harm: Harm, service: Service, load: Keyed) -> dict[str, float]:
    """Do it while callers go on; what Redis had forgotten then, and the seconds until one was served again."""
    with redis.behind() if harm.is_behind else nullcontext(redis.primary()) as primary:
        await load.grown(60)
        held, kept = keys_in(redis, primary), max(keys_in(redis, node) for node in redis.replicas())
        before = time.monotonic()
        if harm.is_emptied:
            redis.ask(primary, "FLUSHALL")
            return {"keys_forgotten": held, "away_s": 0.0}
        heard = len(service.log("redis.back"))
        primary.kill()

        async def is_back() -> bool:
            return len(service.log("redis.back")) > heard

        await until(is_back, "Redis is found again")
        await load.grown(1)
        away_s = round(time.monotonic() - before, 1)
    await comes_back(redis, primary)
    assert held - kept > 0 or not harm.is_behind
    return {"keys_forgotten": max(0, held - kept), "away_s": away_s}


def keys_in(redis: RedisSentinel, node: Node) -> int:
    """How many keys that server has."""
    return int(redis.ask(node, "DBSIZE").strip().removeprefix(":"))


async def comes_back(redis: RedisSentinel, killed: Node) -> None:
    """Start the old primary again, and wait until it is a replica."""
    assert redis.primary() is not killed
    await asyncio.to_thread(redis.start, killed.number)

    async def is_replica() -> bool:
        return "role:slave" in redis.ask(killed, "INFO replication")

    await until(is_replica, "the old primary is a replica")


async def accepted_again(load: Keyed, entries: list[Entry]) -> int:
    """Say these once more in the same words; how many were taken for new."""
    known = len(load.ledger.entries)
    await asyncio.gather(*(load.submit(entry.body) for entry in entries))
    return len(load.ledger.entries) - known


async def recorded(service: Service, load: Keyed) -> None:
    """Wait until the ledger has everything that was accepted."""
    await final_stories(service, load.ledger)

    async def is_whole() -> bool:
        found: list[Json] = [
            (await service.ask("GET", f"/v1/notifications/{id_}"))[1]["notification"] for id_ in load.ledger.entries
        ]
        return all(each["recorded"] for each in found)

    await until(is_whole, "everything is recorded")
