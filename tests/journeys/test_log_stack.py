"""The log stack as real processes on a real broker."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import redis

from tests.journeys.balance import balance, final_stories
from tests.journeys.harness import Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.shows import shows
from tests.survival import Survived
from waypost.domain.notification import Lane
from waypost.runtime.leasing import EXTEND_S
from waypost.stores.kafka.consumer import HAND_OVER_S
from waypost.stores.kafka.settings import KafkaSettings
from waypost.stores.kafka.topics import TopicNames, prepare

pytestmark = pytest.mark.asyncio

KILLS = 2
HALF = len(Lane) + 1
"""Partitions of all that is recorded, of two each."""


async def log_stack(bootstrap: str, prefix: str, copies: int = 1) -> dict[str, Any]:
    """Settings of a small log; its topics are made first, which a busy broker takes its time for."""
    kafka = {
        "bootstrap": bootstrap,
        "prefix": prefix,
        "group": f"{prefix}workers",
        "partitions": 2,
        "replication": copies,
        "trial": copies < 3,
        "session_timeout_s": 6,
    }
    settings = msgspec.convert(kafka, KafkaSettings)
    await asyncio.to_thread(prepare, settings, TopicNames(settings))
    return {"stack": "log", "kafka": kafka}


@shows("S3-75")
async def test_a_notification_goes_through_the_log(tmp_path: Path, kafka_bootstrap: str, kafka_prefix: str) -> None:
    """Accepted, delivered, settled and recorded: what was answered 202 reads ``sent``."""
    async with running(tmp_path, workers=1, **await log_stack(kafka_bootstrap, kafka_prefix)) as service:
        audience = Audience(service)
        await audience.register(1, (("ios", "android"),))
        status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "user-0", "title": "Hello"})
        assert status == 202
        status, found = await service.ask("GET", f"/v1/notifications/{answer['id']}")
        assert (status, found["notification"]["status"]) in {(200, "pending"), (200, "processing"), (200, "sent")}

        async def sent() -> bool:
            _, found = await service.ask("GET", f"/v1/notifications/{answer['id']}")
            notification = found["notification"]
            return bool(notification["status"] == "sent" and notification["recorded"])

        await until(sent, "the receipt")
        assert len((await service.lab.copies())[answer["id"]]) == 2


@pytest.mark.long
@pytest.mark.survives("no recorder, intake restarted", on="log", so="read as pending, cancelled, and not sent")
async def test_what_is_not_recorded_is_read_and_cancelled_after_a_restart(
    tmp_path: Path, kafka_bootstrap: str, kafka_prefix: str, postgres_url: str, survived: Survived
) -> None:
    """On the machine that accepted it and on another, while there is neither recorder nor worker."""
    log = await log_stack(kafka_bootstrap, kafka_prefix)
    store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
    async with running(tmp_path, workers=1, store=store, roles=["api"], **log) as service:
        others = store | {"run_dir": str(tmp_path / "other")}
        working = ["api", "worker", "report", "expand", "sweep", "recorder"]
        other = service.beside("other", workers=1, store=others, roles=["api"], **log)
        worker = service.beside(
            "worker", workers=1, store=store | {"run_dir": str(tmp_path / "w")}, roles=working, **log
        )
        await other.start()
        try:
            await Audience(service).register(1, (("android",),))
            _, answer = await service.ask("POST", "/v1/notifications", {"user_id": "user-0", "title": "Hello"})
            place = f"/v1/notifications/{answer['id']}"
            service.end()
            await service.start()
            for each in (service, other):
                status, found = await each.ask("GET", place)
                assert (status, found["notification"]["status"]) == (200, "pending")
                assert found["notification"]["recorded"] is False
            status, cancelled = await service.ask("POST", f"{place}/cancel")
            assert (status, cancelled["result"]) == (202, "cancelling")
            await worker.start()

            async def ended() -> bool:
                _, found = await other.ask("GET", place)
                return bool(found["notification"]["recorded"] and found["notification"]["status"] == "cancelled")

            await until(ended, "its end")
            assert await service.lab.arrivals(answer["id"]) == []
        finally:
            other.end()
            worker.end()
        survived(read="pending", sent=0)


@pytest.mark.long
@pytest.mark.survives("Redis emptied", on="log, dedup: redis", so="what was recorded is still a duplicate")
async def test_a_key_that_redis_lost_is_known_from_the_ledger(
    tmp_path: Path, kafka_bootstrap: str, kafka_prefix: str, redis_url: str, survived: Survived
) -> None:
    """Requirements S1-82: the second layer."""
    log = await log_stack(kafka_bootstrap, kafka_prefix)
    async with running(tmp_path, workers=1, redis={"url": redis_url}, dedup="redis", **log) as service:
        await Audience(service).register(1, (("android",),))
        keyed = {"user_id": "user-0", "title": "Pay?", "idempotency_key": "payment-1"}
        plain = {"user_id": "user-0", "title": "Packed", "dedup_window": 600}
        firsts = [(await service.ask("POST", "/v1/notifications", body))[1]["id"] for body in (keyed, plain)]

        async def sent() -> bool:
            found = [(await service.ask("GET", f"/v1/notifications/{each}"))[1]["notification"] for each in firsts]
            return all(each["recorded"] and each["status"] == "sent" for each in found)

        await until(sent, "both recorded")
        with redis.Redis.from_url(redis_url) as emptied:
            emptied.flushdb()
        again = [await service.ask("POST", "/v1/notifications", body) for body in (keyed, plain)]
        assert [(status, answer["id"]) for status, answer in again] == [(200, each) for each in firsts]
        assert sum(sum(copies.values()) for copies in (await service.lab.copies()).values()) == 2
        survived(repeats=2, sent_twice=0)


@shows("S1-127")
@pytest.mark.long
@pytest.mark.survives("workers killed", on="log", so="taken over once, copies only of what was in flight")
@pytest.mark.timeout(600)
async def test_kill_9_under_load_loses_nothing(
    tmp_path: Path, rng: random.Random, kafka_bootstrap: str, kafka_prefix: str, survived: Survived
) -> None:
    """Workers die at random: what comes twice was in flight when one died, or when a partition went to another."""
    async with running(tmp_path, workers=2, **await log_stack(kafka_bootstrap, kafka_prefix)) as service:
        audience = Audience(service)
        await audience.register(30)
        load = Load(service, audience, rng)
        callers = asyncio.create_task(load.run(8, limit=1_000_000, pause_s=0.02))
        kills = []
        for _ in range(KILLS):
            await load.grown(rng.randrange(50, 150))
            kills.append(await service.kill(rng.choice(service.worker_pids())))
        await load.grown(50)
        load.stop()
        await callers
        await final_stories(service, load.ledger)
        result = await balance(service, load.ledger, kills=[*kills, *moves(service)])
        assert service.log("message.unreadable", "stage.failed") == []
        survived(**result.row(), kills=KILLS)


@pytest.mark.long
@pytest.mark.survives("a recorder killed", on="log, ledger on PostgreSQL", so="the other records all, nothing twice")
async def test_when_a_recorder_is_killed_the_other_records_what_was_its(
    tmp_path: Path, rng: random.Random, kafka_bootstrap: str, kafka_prefix: str, postgres_url: str, survived: Survived
) -> None:
    """Two processes that do nothing but record; the one that dies is not started again."""
    log = await log_stack(kafka_bootstrap, kafka_prefix)
    store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
    others = ["api", "worker", "report", "expand", "sweep"]
    async with running(tmp_path, workers=1, store=store, roles=others, **log) as service:
        recorders = [
            service.beside(
                name, workers=1, store=store | {"run_dir": str(tmp_path / f"{name}.run")}, roles=["recorder"], **log
            )
            for name in ("first", "second")
        ]
        for each in recorders:
            await each.start()
        try:
            for each in recorders:
                await until(partial(_records, each, HALF), "the half of the partitions")
            audience = Audience(service)
            await audience.register(30)
            load = Load(service, audience, rng)
            callers = asyncio.create_task(load.run(8, limit=1_000_000, pause_s=0.02))
            await load.grown(100)
            recorders[0].end()
            await load.grown(100)
            await until(partial(_records, recorders[1], 2 * HALF), "the partitions of the one that was killed")
            load.stop()
            await callers
            result = await balance(service, load.ledger, kills=moves(service))
            recorded = await asyncio.to_thread(counted, postgres_url)
            assert recorded == dict(result.statuses), "something was recorded twice, or not"
        finally:
            for each in recorders:
                each.end()
        survived(**result.row())


async def _records(service: Service, count: int) -> bool:
    """Whether that is what a recorder has of the partitions."""
    said = service.log("recording.shared")
    return bool(said) and said[-1]["count"] == count


def counted(url: str) -> dict[str, int]:
    """What the ledger's counters say, by status."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT status, sum(delta) FROM counter GROUP BY status").fetchall()
    return {status: int(n) for status, n in rows if n}


def moves(service: Service) -> list[Kill]:
    """When a worker let partitions go, or noticed that they were gone: the next owner sends what was in flight."""
    left = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in service.log("partitions.left")]
    return [Kill(at - HAND_OVER_S, at + EXTEND_S) for at in left]
