"""A service on PostgreSQL under load, whose workers and whose database are killed and stopped: nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from tests.journeys.balance import balance
from tests.journeys.harness import Kill, Service, running
from tests.journeys.load import Audience, Load
from tests.survival import Survived
from waypost.adapters.sql.postgres.connection import ANSWER_TIMEOUT_S

PAUSED_S = 6.0
"""Longer than a worker waits for an answer, shorter than a lease."""


@pytest.mark.survives(
    "a worker killed, PostgreSQL killed, then frozen",
    on="postgres",
    so="intake 503 at once, nothing half-written, no loss",
)
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_a_service_outlives_its_workers_and_its_database(
    postgres_alone: Postgres, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """A worker killed, the server killed and started again, the server paused: each while callers go on."""
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS journey WITH (FORCE)", "CREATE DATABASE journey")
    store = {"url": beside(postgres_alone.url, "journey"), "run_dir": str(tmp_path / "run")}
    async with running(tmp_path, workers=2, store=store) as service:
        audience = Audience(service)
        await audience.register(40)
        load = Load(service, audience, rng)
        callers = asyncio.create_task(load.run(6, limit=1_000_000, pause_s=0.03))
        kills: list[Kill] = []

        await load.grown(60)
        kills.append(await service.kill(rng.choice(service.worker_pids())))
        await load.grown(60)

        before = time.time()
        await asyncio.to_thread(postgres_alone.kill)
        refused = await refusal_s(service)
        await asyncio.to_thread(postgres_alone.start)
        await load.grown(60)
        kills.append(Kill(before, time.time()))

        before = time.time()
        postgres_alone.freeze()
        await asyncio.sleep(PAUSED_S)  # what is tried is that time passes
        paused = await refusal_s(service)
        postgres_alone.thaw()
        await load.grown(60)
        kills.append(Kill(before, time.time()))

        load.stop()
        await callers
        result = await balance(service, load.ledger, kills=kills)
        assert max(refused, paused) < ANSWER_TIMEOUT_S, "who asks does not wait for the server"
        survived(
            **result.row(),
            refused_within=f"{1000 * refused:.0f} and {1000 * paused:.0f} ms",
            stale=len(service.log("settle.stale")),
        )


async def refusal_s(service: Service) -> float:
    """How long a caller waits for the refusal, once the service has noticed."""
    while True:
        began_s = time.monotonic()
        status, answer = await service.ask("POST", "/v1/notifications", {"user_id": "user-0", "title": "News"})
        if status == 503 and answer["code"] == "storage_away":
            return time.monotonic() - began_s
