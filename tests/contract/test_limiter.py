"""Limiters: together, takers never get more than a limit allows."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.clock import StoppedClock
from tests.contract.limiters import LimiterUnderTest, LocalLimiterUnderTest, redis_limiter_under_test
from tests.shows import shows
from waypost.adapters.in_process.limiter import MemoryLimiter
from waypost.adapters.mapped.limiter import MappedLimiter
from waypost.domain.errors import Unavailable
from waypost.domain.limits import FixedWindow, Granted, TokenBucket, Wait
from waypost.domain.time import DAY_MS, HOUR_MS
from waypost.runtime.clock import SystemClock

pytestmark = pytest.mark.asyncio

SLOW = TokenBucket(size=100, refill_per_s=0.001)
"""One in 1,000 s: what a test takes in between does not count."""
DAILY = FixedWindow(limit=10, window_ms=10_000 * DAY_MS)


@pytest_asyncio.fixture(params=["memory", "mapped", pytest.param("redis", marks=pytest.mark.engines)])
async def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LimiterUnderTest]:
    """With nothing taken."""
    if request.param != "redis":
        yield LocalLimiterUnderTest(tmp_path / "limits" if request.param == "mapped" else None)
        return
    async with redis_limiter_under_test(request.getfixturevalue("redis_url")) as opened:
        yield opened


@shows("S4-27")
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


@shows("S4-30")
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


@shows("S4-32")
@pytest.mark.parametrize("limit", [SLOW, FixedWindow(100, DAILY.window_ms)])
async def test_fifty_takers_at_once_never_exceed_it(
    under_test: LimiterUnderTest, limit: TokenBucket | FixedWindow
) -> None:
    """Requirement S4-32."""

    async def taker() -> int:
        answers = [await under_test.limiter.take("b", limit) for _ in range(10)]
        return sum(isinstance(answer, Granted) for answer in answers)

    assert sum(await asyncio.gather(*(taker() for _ in range(50)))) == 100


async def test_a_ramp_begins_with_a_twentieth_and_anew_after_a_pause(under_test: LimiterUnderTest) -> None:
    """100,000 s of ramp for 1,000 tokens and one in 100 s: what a test takes in between does not count."""
    limiter, slope = under_test.limiter, TokenBucket(1_000, 0.01, ramp_s=100_000)
    assert await limiter.take("r", slope, 50) == Granted(0)
    await under_test.later("r", 50_000_000)
    refused = await limiter.take("r", slope, 1_000)
    assert refused.left == 143, "half of the way up: (5 % + 52.5 %) / 2 of 500 were refilled"
    for _ in range(5):
        await under_test.later("r", 40_000_000)
        granted = await limiter.take("r", slope)
    assert granted.left == 999, "the whole refill, and never above the size"
    await under_test.later("r", 100_000_000)
    assert await limiter.take("r", slope) == Granted(49)


TAKER = """
import asyncio, os, sys, time
from waypost.domain.limits import Granted, TokenBucket
from waypost.runtime.clock import SystemClock

async def main(kind, place):
    if kind == "redis":
        from waypost.stores.redis.limiter import RedisLimiter
        from waypost.stores.redis.settings import RedisSettings
        from waypost.stores.redis.wire import SinglePrimary
        from waypost.telemetry import Silent
        wire = SinglePrimary(RedisSettings(url=place, timeout_s=30), Silent())
        await wire.start()
        limiter = RedisLimiter(wire, "waypost:")
    else:
        from pathlib import Path
        from waypost.adapters.mapped.limiter import MappedLimiter
        limiter = MappedLimiter(Path(place), SystemClock())
    limit = TokenBucket(1_000, 20)
    said = os.write
    said(1, b"ready\\n")
    sys.stdin.readline()
    refused = 0
    before_first = time.time()
    while refused < 20:
        before_last = time.time()
        if isinstance(await limiter.take("b", limit), Granted):
            said(1, b"+")
        else:
            refused += 1
        after_last = time.time()
        after_first = locals().get("after_first", after_last)
    said(1, f" {before_first} {after_first} {before_last} {after_last}".encode())
    if kind == "redis":
        await wire.stop()

asyncio.run(main(*sys.argv[1:]))
"""
"""Takes from a bucket of 1,000 until it was refused 20 times: a sign for each token, then when it took first and last.

However slow the machine, the bucket is empty at the last take.
"""


@contextlib.contextmanager
def taking(place: tuple[str, str], count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that take from one bucket, all at once."""
    with contextlib.ExitStack() as stack:
        takers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", TAKER, *place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
                )
            )
            for _ in range(count)
        ]
        for taker in takers:
            assert taker.stdout is not None and taker.stdout.readline() == b"ready\n"
        for taker in takers:
            assert taker.stdin is not None
            taker.stdin.write(b"\n")
        yield takers


@pytest.fixture(params=["mapped", pytest.param("redis", marks=pytest.mark.engines)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """What processes share, and where it is."""
    where = request.getfixturevalue("redis_url") if request.param == "redis" else str(tmp_path / "limits")
    return request.param, where


@shows("S4-32")
async def test_processes_together_get_what_the_bucket_had_and_what_came_to_the_token(place: tuple[str, str]) -> None:
    """Three of them; the clock that they share says how much came: not one token more or fewer."""
    with taking(place, 3) as takers:
        said = [taker.communicate(timeout=60)[0].decode() for taker in takers]
    granted = sum(each.count("+") for each in said)
    times = [map(float, each.replace("+", "").split()) for each in said]  # one that begins late may have got nothing
    before_first, after_first, before_last, after_last = zip(*times, strict=True)
    most = 1_000 + 20 * (max(after_last) - min(before_first))
    least = 1_000 + 20 * (max(before_last) - min(after_first))
    assert least - 1 <= granted <= most + 1


async def test_who_is_killed_in_the_middle_leaves_nothing_locked_and_gives_nothing_away(tmp_path: Path) -> None:
    began = time.time()
    place = ("mapped", str(tmp_path / "limits"))
    signs = 0
    for _ in range(2):
        with taking(place, 2) as takers:
            for taker in takers:
                assert taker.stdout is not None
                signs += taker.stdout.read(20).count(b"+")
                taker.kill()
            signs += sum(taker.communicate()[0].count(b"+") for taker in takers)
    limiter = MappedLimiter(tmp_path / "limits", SystemClock())
    left = (await limiter.take("b", TokenBucket(1_000, 20))).left
    limiter.close()
    assert signs + left <= 1_000 + 20 * (time.time() - began) + 1


@contextlib.contextmanager
def frozen_in_the_middle(path: Path) -> Iterator[None]:
    """Somebody who has locked every row and does nothing more."""
    holding = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True)"
    command = [sys.executable, "-c", f"{holding}; sys.stdin.read()", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as frozen:
        assert frozen.stdout is not None and frozen.stdout.readline()
        yield
        frozen.kill()


async def test_a_lock_that_is_not_let_go_of_is_waited_for_once_and_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop stands still as long: what waits for a frozen process again and again would freeze, too."""
    monkeypatch.setattr("waypost.adapters.mapped.limiter.TRIES", 20)
    clock, pauses = StoppedClock(), list[float]()
    monkeypatch.setattr("waypost.adapters.mapped.limiter.time.sleep", pauses.append)
    limiter = MappedLimiter(tmp_path / "limits", clock)
    with frozen_in_the_middle(tmp_path / "limits"):
        for _ in range(3):
            with pytest.raises(Unavailable, match="frozen"):
                await limiter.take("b", SLOW)
        assert len(pauses) == 20
        clock.advance(11_000)
        with pytest.raises(Unavailable, match="frozen"):
            await limiter.take("b", SLOW)
        assert len(pauses) == 40
    clock.advance(11_000)
    assert await limiter.take("b", SLOW) == Granted(99)
    limiter.close()


WITH_NOTHING_BEHIND = """
import asyncio, ctypes, mmap, sys
from hashlib import blake2b
from itertools import count
from pathlib import Path
from waypost.adapters.mapped import limiter
from waypost.domain.limits import TokenBucket
from waypost.runtime.clock import SystemClock

PRIVATE_ANONYMOUS, HERE, HERE_IF_FREE = 0x02 | 0x20, 0x10, 0x100000  # the flags of Linux
map_page = ctypes.CDLL(None).mmap
map_page.restype, map_page.argtypes = ctypes.c_void_p, 2 * [ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]

def let_nothing_be_read_behind(path):
    places = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    end = next(place[0].split("-")[1] for place in places if place[-1] == path)
    behind = next((place[-1] for place in places if place[0].startswith(end + "-")), None)
    if behind is not None and not behind.startswith(sys.argv[1]):
        return False  # something of somebody else's
    flags = PRIVATE_ANONYMOUS | (HERE_IF_FREE if behind is None else HERE)
    return map_page(int(end, 16), mmap.PAGESIZE, 0, flags, -1, 0) == int(end, 16)

kept = []
for n in range(100):  # the system chooses the places, often beside the file mapped last, which is one of ours
    taker = limiter.MappedLimiter(Path(f"{sys.argv[1]}{n}"), SystemClock())
    if let_nothing_be_read_behind(f"{sys.argv[1]}{n}"):
        break
    kept.append(taker)
else:
    sys.exit("behind the file was always something of somebody else's")

async def take_from_the_last_row():
    last = limiter.BUCKET_ROWS - 1
    names = (f"credential:{n}" for n in count())
    in_it = (name for name in names if blake2b(name.encode(), digest_size=16).digest()[3] == last)
    for _ in range(2 * limiter.PER_ROW):
        print(await taker.take(next(in_it), TokenBucket(100, 1)))

asyncio.run(take_from_the_last_row())
"""
"""Takes from buckets of the last row of a file behind which lies nothing that may be read: that ends the process."""


async def test_nothing_is_read_behind_the_end_of_the_file(tmp_path: Path) -> None:
    takes = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITH_NOTHING_BEHIND, str(tmp_path / "limits"), stdout=PIPE, stderr=PIPE
    )
    took, told = await takes.communicate()
    assert (takes.returncode, took.split()) == (0, 32 * [b"Granted(left=99)"]), told.decode()


@pytest.mark.parametrize("kind", ["memory", "mapped"])
async def test_names_without_end_take_no_more_room_and_the_busiest_is_kept(kind: str, tmp_path: Path) -> None:
    """In place of the one that is nearest to being full again, or was unused for longest."""
    clock = StoppedClock()
    limiter = MemoryLimiter(clock, levels=100) if kind == "memory" else MappedLimiter(tmp_path / "limits", clock)
    await limiter.take("busy", SLOW, 90)
    for n in range(20_000):
        await limiter.take(f"visitor {n}", SLOW)
        if n % 50 == 0:
            assert (await limiter.take("busy", SLOW, 100)).left == 10


async def test_no_number_of_windows_makes_a_bucket_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has many addresses makes as many names; a provider's bucket is full again long before they end."""
    monkeypatch.setattr("waypost.adapters.mapped.limiter.ROWS", 4)
    limiter = MappedLimiter(tmp_path / "limits", StoppedClock())
    bucket = TokenBucket(100, 10)
    await limiter.take("credential:demo/fcm", bucket, 90)
    for n in range(500):
        await limiter.take(f"failures:2001:db8:{n:x}::/64", DAILY)
    assert (await limiter.take("credential:demo/fcm", bucket)).left == 9
    limiter.close()
