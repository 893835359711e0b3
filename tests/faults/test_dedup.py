"""The day of repeats on several machines' terms: two services on one PostgreSQL, published to a Redis that forgets."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from scripts.services.redis import Redis
from tests.journeys.harness import running
from tests.journeys.said_again import A_DAY_ONCE
from tests.journeys.test_dedup import Clock, a_day
from tests.journeys.test_published import published
from tests.shows import shows
from tests.survival import Survived

EMPTIED_EVERY = 5


@shows("S1-107", "S2-20")
@pytest.mark.survives(
    "workers of two services killed, Redis emptied, in a day of repeats",
    on="postgres",
    so="each thing once at each device, each answer right",
)
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_a_day_of_repeats_through_two_services_and_a_redis_that_forgets(
    tmp_path: Path, rng: random.Random, postgres_url: str, redis_alone: Redis, survived: Survived
) -> None:
    """What Redis lost lets no repeat through (requirements S1-82): the keys are the store's."""
    clock = Clock(tmp_path)
    settings = {**published(postgres_url, redis_alone.url, tmp_path), "workers": 2, "grpc": {"listen": "127.0.0.1:0"}}
    settings["app"] = A_DAY_ONCE
    emptied = 0

    def empty(place: int) -> None:
        nonlocal emptied
        if place % EMPTIED_EVERY == EMPTIED_EVERY - 1:
            redis_alone.ask(redis_alone.node(1), "FLUSHALL")
            emptied += 1

    async with running(tmp_path, sitecustomize=clock.hook, in_lab=True, **settings) as one:
        apart = published(postgres_url, redis_alone.url, tmp_path / "two")
        two = one.beside("two", **{**settings, **apart})
        two.python_path = one.python_path
        try:
            await two.start()
            survived(**await a_day(one, [one, two], clock, rng, before_each=empty), emptied=emptied)
        finally:
            two.end()
