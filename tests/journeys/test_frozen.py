"""A worker that stands still (SIGSTOP) is killed after 10 s of silence, whatever it held."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.hurry import HURRIED, SOON_SILENT
from tests.journeys.balance import balance
from tests.journeys.harness import Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.shows import shows
from tests.survival import Survived
from tests.tables import AddRow

PAUSED_S = 6.0
"""Longer than `SOON_SILENT` has a silence last."""


@shows("S1-127", "S4-66")
@pytest.mark.survives(
    "a worker frozen inside a write", on="embedded", so="killed after 10 s of silence, its work taken over once"
)
@pytest.mark.asyncio
async def test_a_worker_frozen_inside_a_write_holds_nobody_up_for_long(
    tmp_path: Path, rng: random.Random, survived: Survived
) -> None:
    """It holds the write lock; once the supervisor has killed it the others write on, and nothing is lost."""
    async with running(tmp_path, workers=2, sitecustomize=HURRIED) as service:
        audience = Audience(service)
        await audience.register(20)
        load = Load(service, audience, rng)
        callers = asyncio.create_task(load.run(8, limit=1_000_000, pause_s=0.01))
        await load.grown(100)
        frozen, before = await _freeze_inside_a_write(service)
        began_s = time.monotonic()
        status, answer = await service.ask("POST", "/v1/notifications", load.compose(), anew=True, once=True)
        assert (status, answer["code"]) == (503, "storage_busy")
        await until(lambda: _logged(service, "worker.died", frozen), "the frozen worker is killed")
        silence_s = time.monotonic() - began_s
        killed = Kill(before, time.time())
        assert await _logged(service, "worker.frozen", frozen)
        await load.grown(100)
        load.stop()
        await callers
        result = await balance(service, load.ledger, kills=[killed])
        survived(**result.row(), killed_after=f"{silence_s:.1f} s")


@pytest.mark.asyncio
async def test_a_container_that_was_paused_goes_on_as_if_nothing_had_been(
    tmp_path: Path, rng: random.Random, table: AddRow
) -> None:
    """Supervisor and workers stand still for longer than a silence may last: none is killed, nothing is sent twice.

    One worker that is frozen alone afterwards is killed.
    """
    async with running(tmp_path, workers=2, sitecustomize=SOON_SILENT) as service:
        audience = Audience(service)
        await audience.register(20)
        load = Load(service, audience, rng, guarantee="at_least_once", scheduled_at=None)
        await service.lab.script({"do": {"latency_ms": 700}})
        callers = asyncio.create_task(load.run(16, limit=300, pause_s=0.02))
        await load.grown(150)
        everyone = [service.pid, *service.worker_pids()]
        for pid in everyone:
            os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(PAUSED_S)  # what is tried is that time passes
        for pid in everyone:  # the supervisor first: it has heard of nobody yet
            os.kill(pid, signal.SIGCONT)
        await service.lab.heal()
        await callers
        result = await balance(service, load.ledger)
        assert (result.duplicates, service.worker_pids()) == (0, everyone[1:])
        assert not service.log("worker.frozen", "worker.died")
        os.kill(everyone[1], signal.SIGSTOP)
        await until(lambda: _logged(service, "worker.frozen", everyone[1]), "the frozen worker is killed")
        table("a paused container", paused_s=PAUSED_S, **result.row())


@pytest.mark.asyncio
async def test_a_frozen_worker_that_lost_its_supervisor_does_not_keep_the_next_one_out(
    tmp_path: Path, rng: random.Random
) -> None:
    """It cannot end itself, and holds the port, its shards and perhaps the write lock: who starts ends it."""
    async with running(tmp_path, workers=2) as service:
        audience = Audience(service)
        await audience.register(20)
        load = Load(service, audience, rng, guarantee="at_least_once")  # nothing waits for an intent's deadline
        await load.run(8, limit=100)
        frozen = service.worker_pids()[0]
        os.kill(frozen, signal.SIGSTOP)
        killed = await service.kill(service.pid)
        await service.start()
        assert frozen not in service.worker_pids()
        await load.run(8, limit=200)
        await balance(service, load.ledger, kills=[Kill(killed.before, time.time())])


async def _freeze_inside_a_write(service: Service) -> tuple[int, float]:
    """Stop a worker again and again until it is caught holding the write lock; its pid, and when that was."""
    lock = os.stat(service.directory / "waypost.db.run" / "write.lock").st_ino

    async def caught() -> tuple[int, float] | None:
        for pid in service.worker_pids():
            for _ in range(20):
                before = time.time()
                _stop(pid)
                if _holds(pid, lock):
                    return pid, before
                os.kill(pid, signal.SIGCONT)
                await asyncio.sleep(0)  # let the callers go on
        return None

    found: tuple[int, float] = await until(caught, "a worker is caught holding the write lock")
    return found


def _stop(pid: int) -> None:
    """Stop the process, and all of it: until one thread has seen the signal, the others go on and may unlock."""
    os.kill(pid, signal.SIGSTOP)
    while {_state(thread) for thread in Path(f"/proc/{pid}/task").iterdir()} != {"T"}:
        os.sched_yield()


def _state(thread: Path) -> str:
    """As in proc(5)."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]


def _holds(pid: int, inode: int) -> bool:
    """Whether the process holds an ``flock`` on the file, as /proc/locks says."""
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and int(fields[4]) == pid and fields[5].rpartition(":")[2] == str(inode):
            return True
    return False


async def _logged(service: Service, event: str, pid: int) -> bool:
    return any(line["pid"] == pid for line in service.log(event))
