"""Two machines share the log: one is cut off from everything, or stands still, and comes back after a minute."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.balance import balance, final_stories
from tests.journeys.harness import Json, Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.journeys.test_log_stack import log_stack, moves
from tests.namespace import INSIDE, Namespace, linked
from tests.shows import shows
from tests.survival import Survived

pytestmark = [pytest.mark.asyncio, pytest.mark.long, pytest.mark.timeout(900)]

AWAY_S = 60.0


@shows("S1-127", "S4-66")
@pytest.mark.survives("a worker's network cut by namespace", on="log", so="taken over once, nothing settled twice")
async def test_a_worker_whose_network_is_cut_is_taken_over_and_comes_back(
    tmp_path: Path, rng: random.Random, kafka_bootstrap: str, kafka_prefix: str, postgres_url: str, survived: Survived
) -> None:
    """Connections stay open and hear nothing for a minute: from brokers, database and providers alike."""
    stack = await log_stack(kafka_bootstrap, kafka_prefix)
    with linked() as network:
        async with two_machines(tmp_path, postgres_url, stack, network) as (service, other):

            async def cut() -> None:
                network.cut()
                await asyncio.sleep(AWAY_S)  # what is tried is that time passes
                network.mend()

            survived(**await _without(service, other, rng, cut()))


@pytest.mark.survives("a worker frozen for a minute, then awake", on="log", so="taken over once, nothing settled twice")
async def test_a_worker_that_stands_still_is_taken_over_and_settles_nothing_late(
    tmp_path: Path, rng: random.Random, kafka_bootstrap: str, kafka_prefix: str, postgres_url: str, survived: Survived
) -> None:
    """Alone on its machine it has no supervisor that would kill it."""
    stack = await log_stack(kafka_bootstrap, kafka_prefix)
    async with two_machines(tmp_path, postgres_url, stack, None) as (service, other):

        async def freeze() -> None:
            os.kill(other.pid, signal.SIGSTOP)
            await asyncio.sleep(AWAY_S)  # as above
            os.kill(other.pid, signal.SIGCONT)

        survived(**await _without(service, other, rng, freeze()))


@contextlib.asynccontextmanager
async def two_machines(
    folder: Path, database: str, stack: Json, network: Namespace | None
) -> AsyncIterator[tuple[Service, Service]]:
    """A service of one worker, and another one like it, which may be in a network of its own."""
    apart = folder / "other"
    apart.mkdir()

    def settings(of: Path) -> Json:
        return stack | {"workers": 1, "store": {"url": database, "run_dir": str(of / "run")}}

    async with running(folder, **settings(folder)) as service:
        other = Service(apart, service.lab, service._session)
        other.configure(**settings(apart))
        if network is not None:
            other.prefix, other.url = network.prefix, f"http://{INSIDE}:0"
        try:
            await other.start()
            yield service, other
        finally:
            other.end()


async def _without(service: Service, other: Service, rng: random.Random, away: Any) -> dict[str, object]:
    """Submit to *service* while *other* is away, and after it is back; the row of the table."""
    audience = Audience(service)
    await audience.register(30)
    load = Load(service, audience, rng)
    callers = asyncio.create_task(load.run(6, limit=1_000_000, pause_s=0.2))
    await until(lambda: _takes_part(other), "the other machine has partitions")
    await load.grown(40)
    before = time.time()
    await away
    back = Kill(before, time.time())
    assert service.log("partitions.taken"), "the one that stayed"
    await load.grown(100)
    load.stop()
    await callers
    await final_stories(service, load.ledger)
    result = await balance(service, load.ledger, kills=[back, *moves(service), *moves(other)])
    return result.row()


async def _takes_part(service: Service) -> bool:
    return bool(service.log("partitions.taken"))
