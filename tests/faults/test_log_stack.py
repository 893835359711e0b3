"""The log stack as real processes on three brokers: one dies, all die, and what was answered 202 is delivered."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from scripts.services.kafka import Kafka
from tests.faults.test_kafka import leader_of
from tests.journeys.balance import balance, final_stories
from tests.journeys.harness import Kill, running
from tests.journeys.load import called
from tests.journeys.test_log_stack import counted, log_stack, moves
from tests.survival import Survived

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]

BACK_S = 240.0
"""For three brokers that start on a machine with two cores, and what waits for them."""


@pytest.mark.survives("a broker of three killed", on="log", so="no loss, no stall beyond the session time-out")
async def test_a_broker_that_dies_and_comes_back_loses_nothing(
    tmp_path: Path, rng: random.Random, kafka_three: Kafka, survived: Survived
) -> None:
    """The one that leads what is written most."""
    await _a_broker_dies(tmp_path, rng, kafka_three, survived)


@pytest.mark.survives("a broker of three killed", on="log, ledger on PostgreSQL", so="no loss, recorded once by two")
async def test_a_broker_that_dies_under_two_recorders_loses_nothing(
    tmp_path: Path, rng: random.Random, kafka_three: Kafka, postgres_url: str, survived: Survived
) -> None:
    """Their group finds another coordinator, and their partitions other leaders."""
    store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
    statuses = await _a_broker_dies(tmp_path, rng, kafka_three, survived, store=store)
    assert await asyncio.to_thread(counted, postgres_url) == statuses, "something was recorded twice, or not"


async def _a_broker_dies(
    tmp_path: Path, rng: random.Random, kafka_three: Kafka, survived: Survived, **settings: Any
) -> dict[str, int]:
    """What became of what was accepted."""
    prefix = f"faults-{uuid.uuid4().hex[:8]}."
    log = await log_stack(kafka_three.url, prefix, copies=3)
    async with running(tmp_path, workers=2, **log, **settings) as service:
        async with called(service, rng, users=30, width=8) as load:
            await load.grown(60)
            leader = await asyncio.to_thread(leader_of, kafka_three, f"{prefix}records")
            before = time.time()
            await asyncio.to_thread(kafka_three.kill, leader)
            await load.grown(60)
            stood_still_s = time.time() - before
            await asyncio.to_thread(kafka_three.start, leader)
            killed = Kill(before, time.time())
            await load.grown(60)
        await final_stories(service, load.ledger, BACK_S)
        result = await balance(service, load.ledger, kills=[killed, *moves(service)])
        survived(**result.row(), sixty_more_after=f"{stood_still_s:.1f} s", refused=sum(load.ledger.refusals.values()))
        return dict(result.statuses)


@pytest.mark.survives("all brokers killed", on="log", so="intake 503, in flight settled or leased again, no loss")
async def test_with_all_brokers_away_intake_refuses_and_goes_on_by_itself(
    tmp_path: Path, rng: random.Random, kafka_three: Kafka, survived: Survived
) -> None:
    """What is under way is settled when they are back, or leased again."""
    prefix = f"faults-{uuid.uuid4().hex[:8]}."
    async with running(tmp_path, workers=2, **await log_stack(kafka_three.url, prefix, copies=3)) as service:
        async with called(service, rng, users=30, width=8) as load:
            await load.grown(60)
            before = time.time()
            for node in kafka_three.nodes:
                node.kill()
            said = {"user_id": "user-0", "title": "Nobody hears this"}
            status, refused = await service.ask("POST", "/v1/notifications", said, once=True)
            assert status == 503, refused
            await asyncio.to_thread(kafka_three.up)
            killed = Kill(before, time.time())
            await load.grown(60)
        await final_stories(service, load.ledger, BACK_S)
        result = await balance(service, load.ledger, kills=[killed, *moves(service)])
        survived(**result.row(), refused_with=refused["code"], refused=sum(load.ledger.refusals.values()))
