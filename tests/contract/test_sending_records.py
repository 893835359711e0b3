"""The records of senders, in memory and in Redis: who may process, and what stays of what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec
import pytest
import pytest_asyncio

from tests.contract.bench import new_id
from tests.contract.clock import START, StoppedClock
from tests.memory.sending_records import MemorySendingRecords
from tests.shows import shows
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.sending_record import RecordStatus
from waypost.domain.time import DAY_MS, SECOND_MS, later
from waypost.ports.sending_records import Right, Round, SendingRecords
from waypost.stores.redis.sending_records import RedisSendingRecords
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio
LOCK_S, KEPT_S = 7, 90
END = later(START, DAY_MS)
R = RecordStatus


class RecordsUnderTest(Protocol):
    """Records, and time that goes by for one of them."""

    @property
    def records(self) -> SendingRecords:
        """The records."""
        ...

    async def later(self, one: NotificationId, ms: int) -> None:
        """Let time go by."""
        ...


class MemoryUnderTest:
    """In memory."""

    def __init__(self) -> None:
        self._clock = StoppedClock()
        self.records = MemorySendingRecords(self._clock, LOCK_S * SECOND_MS, KEPT_S * SECOND_MS)

    async def later(self, one: NotificationId, ms: int) -> None:
        """See RecordsUnderTest."""
        self._clock.advance(ms)


class RedisUnderTest:
    """On a server, whose own clock goes on."""

    def __init__(self, redis: SinglePrimary) -> None:
        self.redis = redis
        self.records = RedisSendingRecords(redis, LOCK_S, KEPT_S)

    async def later(self, one: NotificationId, ms: int) -> None:
        """Bring the end of its record nearer."""
        key = f"idempotency:{format_id(one)}"
        (left,) = await self.redis.execute([("PTTL", key)])
        await self.redis.execute([("PEXPIRE", key, left - ms)])


async def redis_of(url: str) -> SinglePrimary:
    """A connection of its own."""
    redis = SinglePrimary(RedisSettings(url=url), Silent())
    await redis.start()
    return redis


@pytest_asyncio.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.engines)])
async def kept(request: pytest.FixtureRequest) -> AsyncIterator[RecordsUnderTest]:
    """Empty records."""
    if request.param == "memory":
        yield MemoryUnderTest()
        return
    redis = await redis_of(request.getfixturevalue("redis_url"))
    yield RedisUnderTest(redis)
    await redis.stop()


async def right(kept: RecordsUnderTest, one: NotificationId, retries: int = 0) -> Right:
    """What a worker is answered."""
    (answer,) = await kept.records.acquire({one: Round(END, retries)})
    assert (answer.wait_ms > 0) is (answer.right is Right.HELD)
    return answer.right


@shows("S4-35", "S4-38")
async def test_each_state_of_the_record_has_its_answer(kept: RecordsUnderTest) -> None:
    """S4-35: the lines of table S4-T4."""
    one = new_id(START)
    assert await right(kept, one) is Right.FIRST
    assert await right(kept, one) is Right.HELD
    await kept.records.note({one: (R.FAILED, Round(END, 1))})
    assert await right(kept, one, 1) is Right.RETRY
    await kept.records.note({one: (R.DELIVERED, Round(END, 1))})
    assert await right(kept, one, 1) is Right.DELIVERED
    await kept.records.note({one: (R.FAILED, Round(END, 2))})  # by a worker that comes late
    assert await right(kept, one, 2) is Right.DELIVERED


async def test_a_replay_of_what_was_delivered_is_sent(kept: RecordsUnderTest) -> None:
    """It came back, or a part of it had failed: its new round ends at another time."""
    one, replay = new_id(START), Round(later(END, 1))
    await kept.records.note({one: (R.DELIVERED, Round(END))})
    assert [each.right for each in await kept.records.acquire({one: replay})] == [Right.RETRY]
    await kept.records.note({one: (R.FAILED, replay)})
    found = (await kept.records.read([one]))[one]
    assert (found.status, found.is_of(END), found.is_of(replay.expires_at)) == (R.FAILED, False, True)


@shows("S4-34")
async def test_a_record_says_its_status_its_retries_and_its_time(kept: RecordsUnderTest) -> None:
    """S4-34, S4-38."""
    one, other = new_id(START), new_id(START)
    assert await kept.records.read([one]) == {}
    await kept.records.acquire({one: Round(END, 3)})
    found = (await kept.records.read([one, other]))[one]
    assert (found.status, found.retry_count) == (R.PROCESSING, 3)
    await kept.records.note({one: (R.FAILED, Round(END, 4))})
    after = (await kept.records.read([one]))[one]
    assert (after.status, after.retry_count) == (R.FAILED, 4)
    assert after.updated_at >= found.updated_at > 1_700_000_000_000


@shows("S4-37", "S4-39")
async def test_a_lock_ends_by_itself_and_the_rest_later(kept: RecordsUnderTest) -> None:
    """S4-37, S4-39: each after its own time."""
    one, other = new_id(START), new_id(START)
    await kept.records.acquire({one: Round(END), other: Round(END)})
    await kept.records.note({other: (R.DELIVERED, Round(END, 0))})
    for each in (one, other):
        await kept.later(each, (LOCK_S - 4) * SECOND_MS)
    assert await right(kept, one) is Right.HELD
    for each in (one, other):
        await kept.later(each, 4 * SECOND_MS)
    assert await right(kept, one) is Right.FIRST
    assert await right(kept, other) is Right.DELIVERED
    await kept.later(other, (KEPT_S - LOCK_S) * SECOND_MS)
    assert await kept.records.read([other]) == {}


@shows("S4-35")
async def test_of_fifty_who_ask_at_once_one_may(kept: RecordsUnderTest) -> None:
    one = new_id(START)
    answers = await asyncio.gather(*(right(kept, one) for _ in range(50)))
    assert sorted(answers) == [Right.FIRST, *[Right.HELD] * 49]


@shows("S4-34", "S4-40")
@pytest.mark.engines
async def test_the_key_is_that_of_simplens_with_the_times_that_were_set(redis_url: str) -> None:
    """S4-34, S4-40."""
    redis = await redis_of(redis_url)
    records, one = RedisSendingRecords(redis, 11, 22), new_id(START)
    key = f"idempotency:{format_id(one)}"
    for act, most_ms in (
        (records.acquire({one: Round(END)}), 11_000),
        (records.note({one: (R.DELIVERED, Round(END, 0))}), 22_000),
    ):
        await act
        kept, left_ms = await redis.execute([("GET", key), ("PTTL", key)])
        assert most_ms - 5_000 < left_ms <= most_ms
        assert msgspec.json.decode(kept).keys() == {"status", "retry_count", "updated_at", "expires_at"}
    await redis.stop()
