"""What is taken ahead of a shared limit: never more together, and little is asked for."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.clock import StoppedClock
from waypost.adapters.in_process.ahead import PART, TakenAhead
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.domain.limits import FixedWindow, Granted, Limit, TokenBucket, Wait
from waypost.domain.time import MINUTE_MS

pytestmark = pytest.mark.asyncio

LARGE = FixedWindow(20_000, MINUTE_MS)


class Counted(MemoryLimiter):
    """A shared limiter that is far away."""

    asked = 0

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """Answers a turn later."""
        self.asked += 1
        await asyncio.sleep(0)
        return await super().take(name, limit, n)


async def taken(limiter: TakenAhead, times: int, n: int = 1) -> int:
    """How many of so many takes were granted."""
    answers = [await limiter.take("caller", LARGE, n) for _ in range(times)]
    return n * sum(isinstance(answer, Granted) for answer in answers)


async def test_one_process_gets_the_whole_and_asks_seldom() -> None:
    clock = StoppedClock()
    shared = Counted(clock)
    limiter = TakenAhead(shared, clock)
    assert await taken(limiter, 19_500) == 19_500
    assert shared.asked <= PART
    assert await taken(limiter, 600) == 500
    clock.advance(MINUTE_MS)
    assert await taken(limiter, 10) == 10


async def test_several_get_no_more_together_and_hardly_less() -> None:
    """Also many at once in each, and batches; what one holds counts for its window alone."""
    clock = StoppedClock()
    shared = Counted(clock)
    limiters = [TakenAhead(shared, clock) for _ in range(3)]
    for _ in range(2):
        counts = await asyncio.gather(*(taken(each, 2_000, n) for each in limiters for n in (1, 3, 7)))
        assert 0.96 * LARGE.limit <= sum(counts) <= LARGE.limit
        clock.advance(MINUTE_MS)


async def test_what_is_small_or_a_bucket_is_asked_for_each_time() -> None:
    clock = StoppedClock()
    shared = Counted(clock)
    limiter = TakenAhead(shared, clock)
    for limit in (FixedWindow(100, MINUTE_MS), TokenBucket(100_000, 10.0)):
        for _ in range(5):
            await limiter.take(str(limit), limit)
    assert shared.asked == 10
    with pytest.raises(ValueError, match="is not from 1 to"):
        await limiter.take("caller", LARGE, LARGE.limit + 1)
