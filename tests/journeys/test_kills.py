"""``kill -9`` at random moments under load: nothing accepted is lost, nothing is sent again without reason."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from tests.hurry import HURRIED
from tests.journeys.balance import balance, recount
from tests.journeys.harness import Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.shows import shows
from tests.survival import Survived
from waypost.bootstrap.worker import FOR_WRITERS

KILLS = int(os.environ.get("WAYPOST_CHAOS_KILLS", "4"))
"""In all; half of them with one worker, half with two. `make faults` and `make chaos` have more."""
CALLERS = int(os.environ.get("WAYPOST_CHAOS_CALLERS", "8"))
PAUSE_S = 0.02
HOOK = "" if "WAYPOST_CHAOS_KILLS" in os.environ else HURRIED
"""The long forms wait as long for an answer as the product does."""
SUPERVISOR_SHARE = 0.3
"""Of the kills after the first, which is one of the supervisor, and the second, which is one of a worker."""


@shows("S1-16", "S3-29", "S4-66", "S4-75")
@pytest.mark.survives(
    "workers and the supervisor killed", on="embedded", so="taken over once, copies only of what was in flight"
)
@pytest.mark.timeout(300 + 20 * KILLS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.asyncio
async def test_kill_9_under_load_loses_nothing(
    workers: int, tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """Workers and supervisors die at random; everything accepted is final within seconds, once for each device.

    Of several workers one carries what is critical: the second kill is its.
    """
    async with running(tmp_path, workers=workers, critical_worker=workers > 1, sitecustomize=HOOK) as service:
        audience = Audience(service)
        await audience.register(60)
        load = Load(service, audience, rng)
        callers = asyncio.create_task(load.run(CALLERS, limit=1_000_000, pause_s=PAUSE_S))
        kills: list[Kill] = []
        supervisors = 0
        for n in range(KILLS // 2):
            await load.grown(rng.randrange(20, 150))
            victim = _critical_worker(service) if workers > 1 and n == 1 else rng.choice(service.worker_pids())
            if workers > 1 and (n == 0 or (n > 1 and rng.random() < SUPERVISOR_SHARE)):
                victim = service.pid
                supervisors += 1
            kills.append(await service.kill(victim))
            if victim == service.pid:
                await service.start()
            for entry in load.keyed(3):
                await load.repeat(entry)
        load.stop()
        await callers
        began_s = time.monotonic()
        result = await balance(service, load.ledger, kills=kills)
        await recount(service)
        of_worker = len(kills) - supervisors
        survived(
            **result.row(),
            workers=workers,
            kills=f"{of_worker} of a worker and {supervisors} of the supervisor",
            settled_after=f"{time.monotonic() - began_s:.1f} s",
        )


@shows("S1-127")
@pytest.mark.asyncio
async def test_a_dead_workers_shards_are_taken_over_at_once(tmp_path: Path, rng: random.Random) -> None:
    """The other worker owns all 64 shards before the dead one is replaced.

    Of each the thread that writes goes before the event loop (beside it, the one in which files are read as it starts):
    while it waits for a processor with the write lock, no process can write.
    """
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    async with running(tmp_path, workers=2) as service:
        victim = rng.choice(service.worker_pids())
        assert os.getpriority(os.PRIO_PROCESS, victim) == ours + FOR_WRITERS
        assert _niceness_of_threads(victim).count(ours) == 2
        before = len(service.log("shards.taken"))
        await service.kill(victim)

        async def taken_over() -> bool:
            """Whoever takes them may say so before the supervisor says who died."""
            return any(line["owned"] == 64 for line in service.log("shards.taken")[before:])

        await until(taken_over, "the other worker owns every shard")
        await until(lambda: _is_ready(service), "both workers are ready again")


def _niceness_of_threads(process: int) -> list[int]:
    return [os.getpriority(os.PRIO_PROCESS, int(thread)) for thread in os.listdir(f"/proc/{process}/task")]


def _critical_worker(service: Service) -> int:
    """The process that has the last slot now."""
    started = [line for line in service.log("worker.started") if line["slot"] == 2]
    return int(started[-1]["pid"])


async def _is_ready(service: Service) -> bool:
    status, _ = await service.ask("GET", "/health/ready")
    return status == 200 and len(service.worker_pids()) == 2
