"""PostgreSQL with no connection to give, and PostgreSQL behind a slow network."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from pathlib import Path

import psycopg
import pytest

from scripts.services.postgres import Postgres
from tests.engines import beside, run_sql
from tests.journeys.balance import balance
from tests.journeys.harness import Kill, running
from tests.journeys.load import called
from tests.journeys.test_postgres import all_refused
from tests.proxy import before
from tests.survival import Survived

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(600)]

LATENCY_S = 0.03
"""Of each piece in each direction: a transaction of some statements takes half a second."""
END_OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'connections'"


@pytest.mark.long
@pytest.mark.survives("no connection to be had", on="postgres", so="intake 503 at once, recovery by itself, no loss")
async def test_without_connections_intake_refuses_and_goes_on_when_there_are_some(
    postgres_alone: Postgres, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Somebody else takes every connection that the server has, as workers lose theirs."""
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS connections WITH (FORCE)", "CREATE DATABASE connections")
    store = {"url": beside(postgres_alone.url, "connections"), "run_dir": str(tmp_path / "run")}
    async with running(tmp_path, workers=2, store=store) as service:
        async with called(service, rng, users=10, width=4) as load:
            await load.grown(40)
            began = time.time()
            with contextlib.ExitStack() as hoard:
                await asyncio.to_thread(_take_all, postgres_alone.url, hoard)
                await all_refused(service)
            await load.grown(40)
        result = await balance(service, load.ledger, kills=[Kill(began, time.time())])
        survived(**result.row(), refused=sum(load.ledger.refusals.values()))


@pytest.mark.long
@pytest.mark.survives("a slow server: 60 ms a round trip", on="postgres", so="slower, nothing lost, recovery")
async def test_a_slow_database_slows_everything_and_loses_nothing(
    postgres: Postgres, postgres_url: str, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Callers go on meanwhile; when it is fast again, everything is."""
    async with before("127.0.0.1", postgres.ports[0]) as network:
        store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
        async with running(tmp_path, workers=2, store=store, start=False) as service:
            url = postgres_url.replace(f":{postgres.ports[0]}/", f":{network.port}/")
            service.configure(workers=2, store=store | {"url": url})
            await service.start()
            async with called(service, rng, users=10, width=4) as load:
                await load.grown(40)
                began = time.time()
                network.delay_s = LATENCY_S
                await load.grown(40)
                network.delay_s = 0.0
                slow = Kill(began, time.time())
                await load.grown(40)
            result = await balance(service, load.ledger, kills=[slow])
            survived(**result.row(), forty_took=f"{slow.after - slow.before:.1f} s")


def _take_all(url: str, hoard: contextlib.ExitStack) -> None:
    """Connect until the server has no more to give, and none of the service's connections is left."""
    mine = hoard.enter_context(psycopg.connect(url, autocommit=True))
    while True:
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                hoard.enter_context(psycopg.connect(url))
        if not mine.execute(END_OTHERS).fetchall():
            return
