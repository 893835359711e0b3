"""Routing and sending as services of their own, claims between them: each is killed alone, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from redis import Redis as RedisClient

from scripts.services.redis import Redis
from tests.journeys.balance import Balance, balance
from tests.journeys.harness import Json, Kill, Service, running, until
from tests.journeys.load import Audience, Load
from tests.shows import shows
from tests.survival import Survived
from tests.tables import AddRow

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

ROUTING = ["router", "relay"]
SENDING = ["deliverer", "relay", "report", "expand", "sweep"]
TOPICS = ("work", "delivery.push")
"""Before routing and after it; each lane of each has a stream of its own."""
DEADLINE_S = 90.0
"""For what a killed process held, and a busy machine."""
BETWEEN = 25
"""Accepted from one harm to the next."""
PAUSE_S = 0.1
"""Between a caller's requests: most of the time goes into starting processes, and the load goes on meanwhile."""


class Halves:
    """A service that takes requests, and any number that route or send."""

    def __init__(self, door: Service, settings: Json, open_services: contextlib.ExitStack) -> None:
        self.door = door
        self._settings = settings
        self._open = open_services
        self._count = 0

    async def hire(self, roles: Sequence[str]) -> Service:
        """One more, when it is ready."""
        self._count += 1
        name = f"{roles[0]}-{self._count}"
        store = self._settings["store"] | {"run_dir": str(self.door.directory / name / "run")}
        service = self.door.beside(name, workers=1, **self._settings | {"roles": list(roles), "store": store})
        self._open.callback(service.end)
        await service.start()
        return service


@contextlib.asynccontextmanager
async def halves(folder: Path, postgres_url: str, **broker: Any) -> AsyncIterator[Halves]:
    """The door alone, on *broker*; every process is ended with the block."""
    settings: dict[str, Any] = {
        "handoff": "queue",
        "roles": ["api"],
        "store": {"url": postgres_url, "run_dir": str(folder / "run")},
        **broker,
    }
    async with running(folder, workers=1, **settings) as door:
        with contextlib.ExitStack() as open_services:
            yield Halves(door, settings, open_services)


@shows("S1-135", "S2-19", "S2-24", "S2-39")
@pytest.mark.timeout(300)
async def test_who_routes_and_who_sends_may_die_alone(
    tmp_path: Path, rng: random.Random, postgres_url: str, redis_url: str, table: AddRow
) -> None:
    """Under load a router is killed and replaced, then a deliverer; a router's death is no reason for a second copy."""
    async with halves(tmp_path, postgres_url, redis={"url": redis_url}, outbox={"to": "redis"}) as services:
        router, deliverer = await asyncio.gather(services.hire(ROUTING), services.hire(SENDING))
        result = await _ordeal(services, rng, [router], [deliverer], rounds=1)
        with RedisClient.from_url(redis_url, decode_responses=True) as client:
            streams = set(client.keys("waypost:*:demo"))
        assert streams >= {f"waypost:{topic}:{{{lane}}}:demo" for topic in TOPICS for lane in ("critical", "silent")}
        table("routing and sending apart", faults="router killed, deliverer killed", **result.row())


@shows("S4-66")
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.survives("a router or a deliverer killed", on="postgres", so="each alone without loss, work handed over")
async def test_routers_and_deliverers_die_again_and_again_and_what_is_published_is_lost(
    redis_alone: Redis, tmp_path: Path, rng: random.Random, postgres_url: str, survived: Survived
) -> None:
    """Three rounds of kills with two of each, Redis emptied in every one."""
    async with halves(tmp_path, postgres_url, redis={"url": redis_alone.url}, outbox={"to": "redis"}) as services:
        routers = list(await asyncio.gather(services.hire(ROUTING), services.hire(ROUTING)))
        deliverers = list(await asyncio.gather(services.hire(SENDING), services.hire(SENDING)))
        result = await _ordeal(services, rng, routers, deliverers, rounds=3, redis=redis_alone)
        row = result.row()
        survived(accepted=row["accepted"], sent=row.get("sent", 0), lost=row["lost"], twice=row["twice"])


async def _ordeal(
    services: Halves,
    rng: random.Random,
    routers: list[Service],
    deliverers: list[Service],
    *,
    rounds: int,
    redis: Redis | None = None,
) -> Balance:
    """Kill one of each in every round while callers go on, and hire another."""
    audience = Audience(services.door)
    await audience.register(20)
    load = Load(services.door, audience, rng)
    callers = asyncio.create_task(load.run(4, limit=1_000_000, pause_s=PAUSE_S))
    explained: list[Kill] = []
    for _ in range(rounds):
        await load.grown(BETWEEN)
        await _replaced(services, routers, rng, ROUTING)
        await load.grown(BETWEEN)
        if redis is not None:
            redis.ask(redis.node(1), "FLUSHALL")
            await load.grown(BETWEEN)
        explained.append(await _replaced(services, deliverers, rng, SENDING))
        await load.grown(BETWEEN)
    load.stop()
    await callers
    result = await balance(services.door, load.ledger, kills=explained, deadline_s=DEADLINE_S)
    for service in (services.door, *routers, *deliverers):
        assert service.log("stage.failed") == []
    await until(lambda: _nothing_waits(services.door), "every entry is published")
    return result


async def _replaced(services: Halves, those: list[Service], rng: random.Random, roles: Sequence[str]) -> Kill:
    """Kill one of *those*, and let another take its place."""
    dying = those.pop(rng.randrange(len(those)))
    kill = await dying.kill(dying.pid)
    those.append(await services.hire(roles))
    return kill


async def _nothing_waits(door: Service) -> bool:
    _, page = await door.ask("GET", "/v1/outbox?limit=1")
    return {status for status, count in page["counts"].items() if count} <= {"published"}
