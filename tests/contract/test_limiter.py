"""Limiters: together, takers never get more than a limit allows."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.limiters import LimiterUnderTest, MemoryLimiterUnderTest, redis_limiter_under_test
from waypost.domain.limits import FixedWindow, Granted, TokenBucket, Wait
from waypost.domain.time import DAY_MS, HOUR_MS

pytestmark = pytest.mark.asyncio

SLOW = TokenBucket(size=100, refill_per_s=0.001)
"""One in 1,000 s: what a test takes in between does not count."""
DAILY = FixedWindow(limit=10, window_ms=10_000 * DAY_MS)


@pytest_asyncio.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.engines)])
async def under_test(request: pytest.FixtureRequest) -> AsyncIterator[LimiterUnderTest]:
    """With nothing taken."""
    if request.param == "memory":
        yield MemoryLimiterUnderTest()
        return
    async with redis_limiter_under_test(request.getfixturevalue("redis_url")) as opened:
        yield opened


async def test_a_bucket_is_full_at_first_and_says_what_is_left(under_test: LimiterUnderTest) -> None:
    limiter = under_test.limiter
    assert await limiter.take("b", SLOW) == Granted(99)
    assert await limiter.take("b", SLOW, 98) == Granted(1)
    assert await limiter.take("other", SLOW, 100) == Granted(0)
    refused = await limiter.take("b", SLOW, 2)
    assert isinstance(refused, Wait)
    assert refused.left == 1
    assert 990_000 < refused.wait_ms <= 1_000_000
    assert await limiter.take("b", SLOW) == Granted(0), "what was refused took nothing"


async def test_a_bucket_refills_by_the_time_that_went_by_and_never_above_its_size(
    under_test: LimiterUnderTest,
) -> None:
    limiter = under_test.limiter
    await limiter.take("b", SLOW, 100)
    await under_test.later("b", 3_500_000)
    assert await limiter.take("b", SLOW) == Granted(2)
    await under_test.later("b", 500_000)
    assert await limiter.take("b", SLOW, 3) == Granted(0)
    await under_test.later("b", 100 * HOUR_MS)
    assert await limiter.take("b", SLOW) == Granted(99)


async def test_a_window_begins_anew_and_not_before(under_test: LimiterUnderTest) -> None:
    limiter = under_test.limiter
    assert await limiter.take("w", DAILY, 7) == Granted(3)
    refused = await limiter.take("w", DAILY, 4)
    assert isinstance(refused, Wait) and refused.left == 3
    assert 0 < refused.wait_ms <= DAILY.window_ms
    assert await limiter.take("w", DAILY, 3) == Granted(0)
    await under_test.later("w", DAILY.window_ms)
    assert await limiter.take("w", DAILY) == Granted(9)


async def test_more_than_there_can_ever_be_is_an_error(under_test: LimiterUnderTest) -> None:
    for limit, n in ((SLOW, 101), (SLOW, 0), (DAILY, 11)):
        with pytest.raises(ValueError, match="is not from 1 to"):
            await under_test.limiter.take("b", limit, n)


@pytest.mark.parametrize("limit", [SLOW, FixedWindow(100, DAILY.window_ms)])
async def test_fifty_takers_at_once_never_exceed_it(
    under_test: LimiterUnderTest, limit: TokenBucket | FixedWindow
) -> None:
    """Requirement S4-32."""

    async def taker() -> int:
        answers = [await under_test.limiter.take("b", limit) for _ in range(10)]
        return sum(isinstance(answer, Granted) for answer in answers)

    assert sum(await asyncio.gather(*(taker() for _ in range(50)))) == 100


TAKER = """
import asyncio, sys
from waypost.adapters.redis.limiter import RedisLimiter
from waypost.adapters.redis.settings import RedisSettings
from waypost.adapters.redis.wire import Wire
from waypost.domain.limits import Granted, TokenBucket
from waypost.telemetry import Silent

async def main():
    wire = Wire(RedisSettings(url=sys.argv[1], timeout_s=30), Silent())
    await wire.start()
    limiter = RedisLimiter(wire, "waypost:")
    print("ready", flush=True)
    sys.stdin.readline()
    async def taker():
        return [await limiter.take("b", TokenBucket(100, 0.001)) for _ in range(4)]
    answers = [answer for each in await asyncio.gather(*(taker() for _ in range(25))) for answer in each]
    print(sum(isinstance(answer, Granted) for answer in answers))
    await wire.stop()

asyncio.run(main())
"""


@pytest.mark.engines
async def test_takers_in_several_processes_never_exceed_it(redis_url: str) -> None:
    """Two processes of 25 takers each ask for 200 of 100 at the same time."""
    assert await asyncio.to_thread(_taken_by_processes, redis_url, 2) == 100


def _taken_by_processes(url: str, count: int) -> int:
    command = [sys.executable, "-c", TAKER, url]
    with contextlib.ExitStack() as stack:
        takers = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(count)
        ]
        for taker in takers:
            assert taker.stdout is not None and taker.stdout.readline() == "ready\n"
        for taker in takers:
            assert taker.stdin is not None
            taker.stdin.write("\n")
            taker.stdin.flush()
        return sum(int(taker.communicate(timeout=60)[0]) for taker in takers)
