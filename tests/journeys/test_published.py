"""A service on PostgreSQL whose outbox is published: either server is harmed under load, nothing is lost or stuck."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis

from scripts.services.postgres import Postgres
from scripts.services.redis import Redis as RedisServer
from tests.engines import beside, run_sql
from tests.journeys.balance import balance
from tests.journeys.harness import Json, Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.journeys.test_postgres import all_refused
from tests.shows import shows
from tests.tables import AddRow
from waypost.domain.ids import parse_id
from waypost.domain.notification import Lane

pytestmark = pytest.mark.asyncio


def published(postgres_url: str, redis_url: str, folder: Path) -> Json:
    """Settings of the outbox."""
    store = {"url": postgres_url, "run_dir": str(folder / "run")}
    return {"store": store, "redis": {"url": redis_url}, "outbox": {"to": "redis"}}


@pytest.mark.parametrize("topics", ["lanes", "channels"])
async def test_a_notification_is_delivered_and_others_hear_of_it(
    tmp_path: Path, postgres_url: str, redis_url: str, topics: str
) -> None:
    """Accepted, delivered and settled, within a moment; its id is in the stream."""
    settings = published(postgres_url, redis_url, tmp_path)
    settings["outbox"]["topics"] = topics
    async with running(tmp_path, workers=1, **settings) as service:
        audience = Audience(service)
        await audience.register(1, (("ios", "android"),))
        status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "user-0", "title": "Hello"})
        assert status == 202
        await until(partial(service.is_sent, answer["id"]), "the receipt")
        assert len((await service.lab.copies())[answer["id"]]) == 2
        async with Redis.from_url(redis_url) as others:
            by_lane = {b"b": b"\1" + parse_id(answer["id"])}
            names = [f"waypost:work:{{{lane}}}:demo" for lane in Lane]
            if topics == "channels":
                names = ["waypost:push_notification"]

            async def heard() -> bool:
                entries = [entry for name in names for _, entry in await others.xrange(name) or () if entry]
                return any(entry == by_lane or entry.get(b"key") == answer["id"].encode() for entry in entries)

            await until(heard, "its entry")


@shows("S4-16", "S4-66")
@pytest.mark.timeout(600)
async def test_what_is_published_outlives_workers_broker_and_store(
    postgres_alone: Postgres, redis_alone: RedisServer, tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """Workers killed, Redis killed, frozen and emptied, PostgreSQL killed and paused: each while callers go on."""
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS published WITH (FORCE)", "CREATE DATABASE published")
    settings = published(beside(postgres_alone.url, "published"), redis_alone.url, tmp_path)
    async with running(tmp_path, workers=2, **settings) as service:
        audience = Audience(service)
        await audience.register(40)
        load = Load(service, audience, rng)
        callers = asyncio.create_task(load.run(6, limit=1_000_000, pause_s=0.03))
        await load.grown(60)
        kills = [await service.kill(rng.choice(service.worker_pids()))]
        await load.grown(60)
        await _harm_redis(redis_alone, load, service)
        kills += await _harm_postgres(postgres_alone, load, service)
        load.stop()
        await callers
        result = await balance(service, load.ledger, kills=kills)
        assert service.log("stage.failed") == []
        faults = "worker killed, Redis killed, frozen, emptied, PostgreSQL killed, paused"
        table("published under load", faults=faults, **result.row(), stale=len(service.log("settle.stale")))


async def _harm_redis(redis: RedisServer, load: Load, service: Service) -> None:
    """Delivery goes on without it; nothing of this explains a second copy."""
    redis.kill()
    await load.grown(60)
    await until(lambda: _logged(service, "relay.retry"), "a relay rests")
    redis.start()
    await until(lambda: _logged(service, "redis.back"), "Redis is found again", 120)
    await load.grown(60)
    redis.freeze()
    await load.grown(60)
    redis.thaw()
    await load.grown(60)
    redis.ask(redis.node(1), "FLUSHALL")
    await load.grown(60)


async def _harm_postgres(postgres: Postgres, load: Load, service: Service) -> list[Kill]:
    """What was in flight then may come twice."""
    before = time.time()
    await asyncio.to_thread(postgres.kill)
    await asyncio.to_thread(postgres.start)
    await load.grown(60)
    kills = [Kill(before, time.time())]
    before = time.time()
    postgres.freeze()
    await all_refused(service)  # no worker waits for an answer any more
    postgres.thaw()
    await load.grown(60)
    return [*kills, Kill(before, time.time())]


async def _logged(service: Service, event: str) -> bool:
    return bool(service.log(event))


@shows("S4-15")
async def test_operators_follow_the_outbox(tmp_path: Path, postgres_url: str, redis_url: str) -> None:
    """Requirement S4-15: by the API and by the command line."""
    settings = published(postgres_url, redis_url, tmp_path)
    async with running(tmp_path, workers=1, **settings) as service:
        for _ in range(3):
            status, _ = await service.ask(
                "POST", "/v1/notifications", {"user_id": "nobody", "title": "Hello", "idempotency_key": "k"}
            )
            assert status in (200, 202)
        for n in range(2):
            status, _ = await service.ask("POST", "/v1/notifications", {"user_id": f"user-{n}", "title": "Hello"})
            assert status == 202

        async def all_published() -> Json | None:
            _, page = await service.ask("GET", "/v1/outbox?status=published&limit=2")
            return page if page["counts"]["published"] == 3 else None

        page = await until(all_published, "the relay")
        assert [each["status"] for each in page["items"]] == ["published", "published"]
        _, rest = await service.ask("GET", f"/v1/outbox?limit=2&cursor={page['next']}")
        assert (len(rest["items"]), rest["next"]) == (1, None)
        environment = {"WAYPOST_URL": service.url, "WAYPOST_API_KEY": service.key, "PATH": os.environ["PATH"]}
        command = [sys.executable, "-m", "waypost.cli", "outbox", "--status", "pending"]
        said = await asyncio.to_thread(
            subprocess.run, command, env=environment, capture_output=True, text=True, check=True
        )
        assert said.stdout == "no entries\n0 pending, 0 claimed, 3 published\n"
