"""Services with roles of their own on one PostgreSQL, as on several machines: one takes requests, others deliver."""

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

import aiohttp
import pytest

from scripts.services.service import choose_ports
from tests.hurry import HURRIED
from tests.journeys.balance import balance, listed
from tests.journeys.harness import Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.shows import shows
from tests.tables import AddRow
from waypost.stores.sql.postgres.member_rows import LEASE_S

pytestmark = pytest.mark.asyncio

DELIVERING = ["worker", "report", "expand", "sweep"]
SLOW_MS = 1_000
"""What a provider takes to answer: so long everything is in flight."""


class Fleet:
    """A service that takes requests, and any number that deliver."""

    def __init__(self, door: Service, url: str, open_services: contextlib.ExitStack) -> None:
        self.door = door
        self._url = url
        self._open = open_services
        self._count = 0

    async def hire(self) -> Service:
        """One more that delivers, when it is ready."""
        self._count += 1
        name = f"worker-{self._count}"
        worker = self.door.beside(name, workers=1, roles=DELIVERING, store=store(self._url, self.door.directory / name))
        self._open.callback(worker.end)
        await worker.start()
        return worker

    async def says(self, check: str) -> str | None:
        """A line of the door's readiness."""
        _, found = await self.door.ask("GET", "/health/ready")
        said: str | None = found["checks"].get(check)
        return said


def store(url: str, directory: Path) -> dict[str, Any]:
    """The common database, and what is this machine's."""
    return {"url": url, "run_dir": str(directory / "run")}


@contextlib.asynccontextmanager
async def fleet(tmp_path: Path, url: str, *, hook: str = "") -> AsyncIterator[Fleet]:
    """The door alone; every process is ended with the block, and begins with *hook*."""
    settings: dict[str, Any] = {"workers": 1, "roles": ["api"], "store": store(url, tmp_path)}
    async with running(tmp_path, sitecustomize=hook, **settings) as door:
        with contextlib.ExitStack() as open_services:
            yield Fleet(door, url, open_services)


@shows("S1-104", "S1-107", "S1-127", "S2-39")
@pytest.mark.engines
@pytest.mark.timeout(600)
async def test_who_takes_requests_and_who_delivers_may_die_and_join_at_any_time(
    tmp_path: Path, rng: random.Random, postgres_url: str, table: AddRow
) -> None:
    """Alone the door accepts; then workers and the door itself are killed, and others join: nothing is lost."""
    async with fleet(tmp_path, postgres_url, hook=HURRIED) as services:
        door = services.door
        audience = Audience(door)
        await audience.register(20)
        load = Load(door, audience, rng)
        await load.run(4, limit=20)
        assert not await door.lab.copies()
        assert await services.says("delivery") == "no worker: what is accepted waits"

        first, second = await asyncio.gather(services.hire(), services.hire())
        status, answer = await first.ask("GET", f"/v1/notifications/{next(iter(load.ledger.entries))}")
        assert (status, answer["code"]) == (404, "not_found")
        assert (await second.ask("GET", "/health/ready"))[0] == 200
        callers = asyncio.create_task(load.run(6, limit=1_000_000, pause_s=0.03))
        await until(lambda: _is_none(services.says("delivery")), "the door knows that somebody delivers")

        kills = []
        await load.grown(60)
        kills.append(await first.kill(first.pid))
        await load.grown(60)
        kills.append(await door.kill(door.pid))
        _, third = await asyncio.gather(door.start(), services.hire())
        await until(lambda: _owns(third), "the third has its share")
        await load.grown(60)
        load.stop()
        await callers
        result = await balance(door, load.ledger, kills=kills)
        table("roles on PostgreSQL", faults="worker killed, door killed, a third joined", **result.row())


@pytest.mark.long
@pytest.mark.engines
@pytest.mark.timeout(600)
async def test_a_worker_frozen_for_longer_than_its_lease_settles_nothing_when_it_wakes(
    tmp_path: Path, rng: random.Random, postgres_url: str, table: AddRow
) -> None:
    """What it had in flight is taken over once, and reads the same after it woke as before.

    What it had handed to its senders may still leave when it wakes: a second copy of what was in flight.
    """
    async with fleet(tmp_path, postgres_url) as services:
        door = services.door
        frozen = await services.hire()
        audience = Audience(door)
        await audience.register(20)
        await door.lab.script({"do": {"latency_ms": SLOW_MS}})
        load = Load(door, audience, rng, guarantee="at_least_once", scheduled_at=None)
        await load.run(8, limit=60)
        before = time.time()
        os.kill(frozen.pid, signal.SIGSTOP)
        await door.lab.heal()
        in_flight = sum(each["status"] != "sent" for each in (await listed(door)).values())
        assert in_flight, "it holds something"
        await services.hire()
        result = await balance(door, load.ledger, kills=[Kill(before, time.time())])
        assert time.time() - before > LEASE_S
        settled = await listed(door)
        os.kill(frozen.pid, signal.SIGCONT)
        await until(lambda: _logged(frozen, "settle.stale"), "what it settles late is refused")
        await load.run(8, limit=120)
        await balance(door, load.ledger, kills=[Kill(before, time.time())])
        after = await listed(door)
        assert {id_: after[id_] for id_ in settled} == settled
        copies = [count for tokens in (await door.lab.copies()).values() for count in tokens.values()]
        assert max(copies) == 2, "it is sent again by one worker, once"
        table("frozen on PostgreSQL", **result.row(), in_flight=in_flight, stale=len(frozen.log("settle.stale")))


async def _is_none(answer: Any) -> bool:
    return await answer is None


async def _owns(service: Service) -> bool:
    return bool(service.log("shards.taken"))


async def _logged(service: Service, event: str) -> bool:
    return bool(service.log(event))


async def test_metrics_have_a_port_of_their_own_that_all_workers_answer(tmp_path: Path) -> None:
    """It asks for no key, and serves nothing else; the API's port serves no metrics then."""
    (port,) = choose_ports(1, None)
    async with running(tmp_path, workers=2, rest={"operating_listen": f"127.0.0.1:{port}"}) as service:
        for path, status in (("/metrics", 200), ("/health/ready", 200), ("/v1/notifications", 404), ("/docs", 404)):
            async with aiohttp.request("GET", f"http://127.0.0.1:{port}{path}") as answer:
                assert answer.status == status, path
                assert ("# TYPE waypost_" in await answer.text()) == (path == "/metrics")
        assert (await service.ask("GET", "/metrics"))[0] == 404
        assert (await service.ask("GET", "/health/ready"))[0] == 200
