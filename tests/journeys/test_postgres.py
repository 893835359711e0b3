"""A service on PostgreSQL under load, whose workers and whose database are killed and stopped: nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import psycopg
import pytest

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from tests.hurry import HURRIED
from tests.journeys.balance import balance
from tests.journeys.harness import Kill, Service, running, until
from tests.journeys.load import called
from tests.shows import shows
from tests.survival import Survived
from waypost.stores.sql.postgres.engine import MIGRATION_LOCK

IN_A_ROW = 20


@shows("S1-104", "S3-128")
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
    async with running(tmp_path, workers=2, store=store, sitecustomize=HURRIED) as service:
        kills: list[Kill] = []
        async with called(service, rng, users=40, width=6) as load:
            await load.grown(60)
            kills.append(await service.kill(rng.choice(service.worker_pids())))
            await load.grown(60)

            before = time.time()
            await asyncio.to_thread(postgres_alone.kill)
            await all_refused(service)
            await asyncio.to_thread(postgres_alone.start)
            await load.grown(60)
            kills.append(Kill(before, time.time()))

            before = time.time()
            postgres_alone.freeze()
            await all_refused(service)
            postgres_alone.thaw()
            await load.grown(60)
            kills.append(Kill(before, time.time()))
        result = await balance(service, load.ledger, kills=kills)
        refused = sum(load.ledger.refusals.values())
        survived(**result.row(), refused=refused, stale=len(service.log("settle.stale")))


@pytest.mark.asyncio
async def test_a_worker_killed_during_a_long_migration_comes_back(postgres_url: str, tmp_path: Path) -> None:
    """Another version makes an index, say; the dead one is buried as soon as its supervisor has seen it end."""
    store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
    async with running(tmp_path, workers=2, store=store) as service:
        with psycopg.connect(postgres_url, autocommit=True) as migrating:
            migrating.execute(b"SELECT pg_advisory_lock(%d)" % MIGRATION_LOCK)
            dead = service.worker_pids()[0]
            await service.kill(dead)
            found = "SELECT until > clock_timestamp() FROM member WHERE pid = %s"
            while row := migrating.execute(found, (dead,)).fetchone():
                assert row == (True,), "it was taken for dead by the clock alone"
                await asyncio.sleep(0)

            async def is_back() -> bool:
                return len(service.log("process.ready")) == 3

            await until(is_back, "it is back")


async def all_refused(service: Service) -> None:
    """Return when a number of requests in a row were refused: every worker has noticed."""
    in_a_row = 0
    while in_a_row < IN_A_ROW:
        news = {"user_id": "user-0", "title": "News"}
        status, answer = await service.ask("POST", "/v1/notifications", news, once=True)
        in_a_row = in_a_row + 1 if (status, answer.get("code")) == (503, "storage_away") else 0
