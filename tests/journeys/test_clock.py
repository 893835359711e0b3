"""The wall clock of a machine with workers steps by an hour, to either side, while they work."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.balance import balance, final_stories
from tests.journeys.harness import running
from tests.journeys.load import Audience, Load
from tests.journeys.test_log_stack import log_stack
from tests.journeys.test_outside import CLOCK
from tests.survival import Survived

HOUR_S = 3600
REQUIRED = "intake and delivery go on, nothing comes twice"
PLATFORMS = (("android",), ("web",), ("android", "web"))
"""Not Apple's: it refuses tokens that were signed at another hour, and what it refuses waits for the clock."""

pytestmark = [pytest.mark.asyncio, pytest.mark.engines, pytest.mark.timeout(600)]


@pytest.mark.survives("the wall clock an hour ahead, then an hour behind", on="postgres", so=REQUIRED)
async def test_the_store_on_postgresql_minds_no_step(
    tmp_path: Path, rng: random.Random, postgres_url: str, survived: Survived
) -> None:
    store = {"url": postgres_url, "run_dir": str(tmp_path / "run")}
    await _stepped(tmp_path, rng, survived, store=store)


@pytest.mark.survives("the wall clock an hour ahead, then an hour behind", on="log", so=REQUIRED)
async def test_the_log_minds_no_step(
    tmp_path: Path, rng: random.Random, kafka_bootstrap: str, kafka_prefix: str, survived: Survived
) -> None:
    await _stepped(tmp_path, rng, survived, **await log_stack(kafka_bootstrap, kafka_prefix))


async def _stepped(folder: Path, rng: random.Random, survived: Survived, **stack: Any) -> None:
    """Nothing is scheduled: what waits for a time of before a step back waits until that time comes."""
    offset = folder / "offset"
    offset.write_text("0")
    async with running(folder, sitecustomize=CLOCK.format(offset=str(offset)), workers=2, **stack) as service:
        audience = Audience(service)
        await audience.register(10, PLATFORMS)
        load = Load(service, audience, rng, scheduled_at=None)
        callers = asyncio.create_task(load.run(4, limit=1_000_000, pause_s=0.03))
        await load.grown(40)
        for step_s in (HOUR_S, 0, -HOUR_S, 0):
            offset.write_text(str(step_s))
            await load.grown(40)
        load.stop()
        await callers
        for entry in load.keyed(5):
            await load.repeat(entry)
        await final_stories(service, load.ledger)
        result = await balance(service, load.ledger)
        assert result.duplicates == 0
        survived(**result.row())
