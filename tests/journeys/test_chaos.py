"""Everything in turn under load: a seeded plan kills, freezes, cuts off, fills disks and steps clocks.

Callers, lab and store are held against each other, and what was available meanwhile is printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from scripts.services.postgres import Postgres
from tests import disk
from tests.journeys.availability import Callers, measured
from tests.journeys.balance import balance
from tests.journeys.chaos import Plan
from tests.journeys.harness import Service, running
from tests.journeys.load import Audience
from tests.journeys.test_outside import CLOCK
from tests.proxy import Proxy, before
from tests.shows import shows
from tests.survival import Survived
from tests.tables import AddRow

SECONDS = float(os.environ.get("WAYPOST_CHAOS_SECONDS", "60")) / 2
"""How long the faults of each store go on, or a little longer; `make chaos` takes 300 s for both."""
PER_S = 15.0
"""Submissions a second."""
DISK_MIB = 128
SMALL_STORE = {"reserve_bytes": 4 << 20, "checkpoint_bytes": 16 << 20}
AVAILABLE = "availability while things go wrong"
INTAKE, DISPATCH = 0.999, 0.995
"""What has to be available (requirements S1-14 and S1-15)."""

pytestmark = [pytest.mark.asyncio, pytest.mark.long, pytest.mark.timeout(3 * SECONDS + 900)]


@shows("S1-14", "S1-15")
@pytest.mark.survives(
    "all of it in turn: killed, frozen, cut off, the disk full", on="embedded", so="nothing lost, stuck or twice"
)
async def test_on_sqlite_everything_that_goes_wrong_is_survived(
    tmp_path: Path, rng: random.Random, survived: Survived, table: AddRow
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with disk.small(folder, DISK_MIB):
        store = {"url": f"sqlite:///{folder}/waypost.db", **SMALL_STORE}
        async with beyond(tmp_path, "apns", "fcm", store=store) as (service, providers):
            callers = await _called(service, rng)
            plan = Plan(service, callers, rng, providers, disk=folder)
            await _lived_through(plan, "embedded", survived, table)


@shows("S1-14", "S1-15")
@pytest.mark.engines
@pytest.mark.survives(
    "all of it in turn: killed, frozen, cut off, the clock an hour off",
    on="postgres",
    so="nothing lost, stuck or twice",
)
async def test_on_postgresql_everything_that_goes_wrong_is_survived(
    tmp_path: Path, rng: random.Random, postgres: Postgres, postgres_url: str, survived: Survived, table: AddRow
) -> None:
    """Apple's devices have no part: what is refused since it was signed at another hour waits for the clock."""
    offset = tmp_path / "offset"
    offset.write_text("0")
    async with before("127.0.0.1", postgres.ports[0]) as database:
        url = postgres_url.replace(f":{postgres.ports[0]}/", f":{database.port}/")
        store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
        hook = CLOCK.format(offset=str(offset))
        async with beyond(tmp_path, "fcm", store=store, reached=store | {"url": url}, sitecustomize=hook) as (
            service,
            providers,
        ):
            callers = await _called(
                service, rng, platforms=(("android",), ("web",), ("android", "web")), scheduled_at=None
            )
            plan = Plan(service, callers, rng, providers, database=database, clock=offset)
            await _lived_through(plan, "postgres", survived, table)


@contextlib.asynccontextmanager
async def beyond(
    folder: Path,
    *names: str,
    store: Mapping[str, object],
    reached: Mapping[str, object] | None = None,
    sitecustomize: str = "",
) -> AsyncIterator[tuple[Service, list[Proxy]]]:
    """A service of two workers that reaches the providers of these *names* by networks that can be spoiled.

    *reached* is how it reaches its *store*, where that is by another way.
    """
    async with contextlib.AsyncExitStack() as stack:
        service = await stack.enter_async_context(
            running(folder, workers=2, store=store, sitecustomize=sitecustomize, start=False)
        )
        providers: list[Proxy] = []
        direct = dict(service.lab.urls)
        for name in names:
            scheme, _, address = direct[name].partition("://")
            host, _, port = address.rpartition(":")
            network = await stack.enter_async_context(before(host, int(port)))
            providers.append(network)
            service.lab.urls[name] = f"{scheme}://{host}:{network.port}"
        service.configure(workers=2, store=reached or store)
        service.lab.urls.update(direct)
        await service.start()
        yield service, providers


async def _called(
    service: Service,
    rng: random.Random,
    platforms: tuple[tuple[str, ...], ...] = (("ios",), ("android",), ("web",), ("ios", "android", "web")),
    **always: str | None,
) -> Callers:
    audience = Audience(service)
    await audience.register(40, platforms)
    return Callers(service, audience, rng, **always)


async def _lived_through(plan: Plan, store: str, survived: Survived, table: AddRow) -> None:
    """Let the plan happen while callers come; then all accounts must add up, and enough have been available."""
    coming = asyncio.create_task(plan.callers.come(PER_S))
    await plan.run(SECONDS)
    plan.callers.stop()
    await coming
    waits = list(plan.callers.waits)
    for entry in plan.callers.keyed(20):
        await plan.callers.repeat(entry)
    result = await balance(plan.service, plan.callers.ledger, kills=plan.kills)
    available = await measured(plan.service, plan.callers, waits)
    worst = available.slowest
    slowest = f"{worst.waited_s:.1f} s, meanwhile: {plan.during(worst.began, worst.began + worst.waited_s)}"
    faults = ", ".join(f"{n} {name}" for name, n in sorted(Counter(name for name, _ in plan.met).items()))
    figures = available.row() | {"slowest": slowest}
    table(AVAILABLE, store=store, submissions=len(waits), **figures, faults=faults)
    survived(**result.row(), faults=len(plan.met), **figures)
    assert available.intake >= INTAKE, available
    assert available.dispatch >= DISPATCH, available
