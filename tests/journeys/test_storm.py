"""Workers of the log leave and join every few seconds: nothing is lost, and only what was in flight comes twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.journeys.balance import balance, final_stories
from tests.journeys.harness import Kill, running
from tests.journeys.load import Audience, Load
from tests.journeys.test_log_stack import log_stack, moves
from tests.survival import Survived

EVERY_S = 3.0
ROUNDS = 6
SLOW_S = 6.0
"""How long the provider takes for one device: longer than two rounds."""
COPIES = 3
"""What is in flight when its worker goes is sent again by the next, which may go as well; more would be a storm."""


@pytest.mark.survives(
    "workers leave and join every 3 s", on="log", so="no loss, copies only of what was in flight, no mass redelivery"
)
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.asyncio
async def test_workers_that_come_and_go_all_the_time_lose_nothing(
    tmp_path: Path, rng: random.Random, kafka_bootstrap: str, kafka_prefix: str, survived: Survived
) -> None:
    """Every other one is killed, the rest are asked to end; one device is slow all the while."""
    async with running(tmp_path, workers=3, **await log_stack(kafka_bootstrap, kafka_prefix)) as service:
        audience = Audience(service)
        await audience.register(30, (("ios", "android"),))
        slow = audience.tokens["user-0"][0]
        await service.lab.script({"do": {"latency_ms": int(1000 * SLOW_S)}, "match": {"token": slow}})
        load = Load(service, audience, rng, guarantee="at_least_once")
        callers = asyncio.create_task(load.run(8, limit=1_000_000, pause_s=0.05))
        await load.grown(60)
        gone: list[Kill] = []
        for n in range(ROUNDS):
            leaving = rng.choice(service.worker_pids())
            if n % 2:
                gone.append(await service.kill(leaving))
            else:
                gone.append(Kill(time.time(), time.time() + EVERY_S))
                os.kill(leaving, signal.SIGTERM)
            await asyncio.sleep(EVERY_S)  # what is tried is that time passes
        await load.grown(60)
        load.stop()
        await callers
        await final_stories(service, load.ledger)
        result = await balance(service, load.ledger, kills=[*gone, *moves(service)])
        copies = (await service.lab.copies()).values()
        most = max(count for tokens in copies for token, count in tokens.items() if token != slow)
        assert most <= COPIES
        survived(**result.row(), came_and_went=ROUNDS, most_copies_of_one=most)
