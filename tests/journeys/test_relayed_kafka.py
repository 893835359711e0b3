"""A service on PostgreSQL whose work Kafka carries: broker and workers die under load, nothing is lost or stuck."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from scripts.services.kafka import Kafka
from tests.journeys.balance import balance
from tests.journeys.harness import Json, Service, running, until
from tests.journeys.load import Audience, Load
from tests.survival import Survived
from waypost.domain.notification import Lane

PARTITIONS = 2
ANSWER_S = 5.0
CARRIES_S = 120.0
"""For a broker that was just started, and its group, on a busy machine."""

pytestmark = pytest.mark.asyncio


def carried(postgres_url: str, bootstrap: str, prefix: str, folder: Path) -> Json:
    """Settings of the stack."""
    kafka = {
        "bootstrap": bootstrap,
        "prefix": prefix,
        "group": f"{prefix}workers",
        "partitions": PARTITIONS,
        "replication": 1,
    }
    store = {"url": postgres_url, "run_dir": str(folder / "run")}
    return {"stack": "relayed", "broker": "kafka", "store": store, "kafka": {**kafka, "session_timeout_s": 6}}


async def test_a_notification_goes_by_way_of_kafka(
    tmp_path: Path, postgres_url: str, kafka_bootstrap: str, kafka_prefix: str
) -> None:
    """Accepted, relayed, delivered and settled; what was handed out is committed when the worker has left."""
    settings = carried(postgres_url, kafka_bootstrap, kafka_prefix, tmp_path)
    async with running(tmp_path, workers=1, **settings) as service:
        audience = Audience(service)
        await audience.register(1, (("ios", "android"),))
        await until(lambda: _logged(service, "partitions.taken"), "partitions")
        status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "user-0", "title": "Hello"})
        assert status == 202
        await until(partial(service.is_sent, answer["id"]), "the receipt")
        assert len((await service.lab.copies())[answer["id"]]) == 2
        assert service.log("stage.failed") == []
        assert service.process is not None
        service.process.terminate()
        assert await service.ended() == 0
        assert await asyncio.to_thread(_committed, kafka_bootstrap, kafka_prefix) == 1


@pytest.mark.long
@pytest.mark.survives("Kafka killed and frozen", on="relayed", so="work goes on from the outbox, no loss")
@pytest.mark.timeout(480)
async def test_what_kafka_carries_outlives_workers_and_the_broker(
    postgres_url: str, kafka_alone: Kafka, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Begun without the broker, a worker killed, the broker killed and frozen, while callers go on."""
    kafka_alone.kill()
    async with running(tmp_path, workers=2, **carried(postgres_url, kafka_alone.url, "carried.", tmp_path)) as service:
        audience = Audience(service)
        await audience.register(40)
        load = Load(service, audience, rng)
        callers = asyncio.create_task(load.run(6, limit=1_000_000, pause_s=0.03))
        await load.grown(60)
        await asyncio.to_thread(kafka_alone.start)
        await _carries(kafka_alone)
        kills = [await service.kill(rng.choice(service.worker_pids()))]
        await load.grown(60)
        kafka_alone.kill()
        await until(lambda: _is_missed(service), "Kafka is missed")
        await load.grown(60)
        await asyncio.to_thread(kafka_alone.start)
        await _carries(kafka_alone)
        kafka_alone.freeze()
        await until(lambda: _is_missed(service), "its silence is noticed")
        await load.grown(60)
        kafka_alone.thaw()
        carried_by_it = await _carries(kafka_alone)
        load.stop()
        await callers
        result = await balance(service, load.ledger, kills=kills)
        assert service.log("stage.failed") == []
        survived(**result.row(), carried=carried_by_it, stale=len(service.log("settle.stale")))


async def _logged(service: Service, event: str) -> bool:
    return bool(service.log(event))


async def _is_missed(service: Service) -> bool:
    """Whether both workers miss Kafka now."""
    return len(service.log("kafka.away")) - len(service.log("kafka.back")) == 2


async def _carries(kafka: Kafka) -> int:
    """Wait until it has carried sixty more; how many it has by then."""
    (before,) = await until(lambda: _told(kafka), "what was carried", CARRIES_S)

    async def more() -> int:
        found = await _told(kafka)
        return found[0] if found and found[0] >= before + 60 else 0

    found: int = await until(more, "the broker carries", CARRIES_S)
    return found


async def _told(kafka: Kafka) -> tuple[int] | None:
    """How much it has carried; None while it has just been started, and cannot say."""
    try:
        return (await asyncio.to_thread(_committed, kafka.url, "carried."),)
    except KafkaException:
        return None


def _committed(bootstrap: str, prefix: str) -> int:
    """How many messages the group is done with."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{prefix}workers"})
    try:
        at = [TopicPartition(f"{prefix}work.{lane}", number) for lane in Lane for number in range(PARTITIONS)]
        return sum(max(0, each.offset) for each in consumer.committed(at, ANSWER_S))
    finally:
        consumer.close()
