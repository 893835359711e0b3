"""Keys in two states: held while their request becomes durable, done from then to the end of their window."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
import pytest_asyncio

from tests.contract.bench import by_content, by_key, new_id, notification
from tests.contract.clock import START
from tests.contract.conftest import empty_store
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.notification import Notification
from waypost.domain.time import DAY_MS, later
from waypost.ports.dedup import Dedup
from waypost.ports.holds import HOLD_MS, Held, Holds
from waypost.ports.work import Conflicting, Duplicate, InProgress, NewNotification
from waypost.stores.redis.holds import ForgetfulDedup, RedisHolds
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio


class HoldsUnderTest(Protocol):
    """One engine's holds, and time that goes by when a test says so."""

    @property
    def holds(self) -> Holds:
        """The holds."""
        ...

    @property
    def dedup(self) -> Dedup:
        """What ends their windows."""
        ...

    async def holds_end(self) -> None:
        """Let HOLD_MS go by."""
        ...

    async def windows_end(self) -> None:
        """Let a day go by."""
        ...


class SqliteHolds:
    """In the store."""

    def __init__(self, store: SqlUnderTest) -> None:
        self._store = store
        self.holds = store.holds
        self.dedup = store.dedup

    async def holds_end(self) -> None:
        """See HoldsUnderTest."""
        self._store.clock.advance(HOLD_MS)

    async def windows_end(self) -> None:
        """See HoldsUnderTest."""
        self._store.clock.advance(DAY_MS)


class NoKeys:
    """A store that knows of no keys."""

    async def forget(self, keys: object) -> int:
        """None."""
        return 0

    async def drop_over(self) -> int:
        """None."""
        return 0


class RedisHoldsUnderTest:
    """On a server, whose clock goes on by itself."""

    def __init__(self, wire: SinglePrimary) -> None:
        self._wire = wire
        self.holds = RedisHolds(wire, "")
        self.dedup = ForgetfulDedup(NoKeys(), NoKeys().forget, self.holds)

    async def holds_end(self) -> None:
        """Those that are held, were until now."""
        (keys,) = await self._wire.execute([("KEYS", "dedup:*")])
        for key, value in zip(keys, await self._wire.execute([("GET", key) for key in keys]), strict=True):
            if value[:1] == b"h":
                await self._wire.execute([("SET", key, value[:33] + b"0", "KEEPTTL")])

    async def windows_end(self) -> None:
        """As Redis ends them."""
        (keys,) = await self._wire.execute([("KEYS", "dedup:*")])
        await self._wire.execute([("PEXPIRE", key, 0) for key in keys])


@pytest_asyncio.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.engines)])
async def under_test(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path
) -> AsyncIterator[HoldsUnderTest]:
    """With nothing held."""
    if request.param == "sqlite":
        async with empty_store("sqlite", tmp_path, request, empty_database) as store:
            assert isinstance(store, SqlUnderTest)
            yield SqliteHolds(store)
        return
    wire = SinglePrimary(RedisSettings(url=request.getfixturevalue("redis_url"), timeout_s=10), Silent())
    await wire.start()
    yield RedisHoldsUnderTest(wire)
    await wire.stop()


def said(body: str) -> Notification:
    """A notification of these words."""
    return notification(START, body=body)


def again(made: Notification) -> Notification:
    """The same once more, under an id of its own."""
    return msgspec.structs.replace(made, id=new_id(START))


def keyed(made: Notification, key: str = "k") -> NewNotification:
    """With the caller's own key, and what it says."""
    return NewNotification(made, (by_key(made, key), by_content(made)))


def plain(made: Notification) -> NewNotification:
    """With what it says alone."""
    return NewNotification(made, (by_content(made),))


async def confirm(holds: Holds, *arrivals: NewNotification) -> None:
    """They are durable."""
    await holds.confirm([(claim, each.notification.id) for each in arrivals for claim in each.claims])


async def hold(holds: Holds, arrival: NewNotification) -> Held:
    """The answer to one."""
    (answer,) = await holds.hold([arrival])
    return answer


@shows("S2-17")
async def test_what_is_held_is_in_progress_and_what_is_done_a_duplicate(under_test: HoldsUnderTest) -> None:
    first = said("a")
    assert await hold(under_test.holds, plain(first)) == first.id
    waiting = await hold(under_test.holds, plain(again(first)))
    assert isinstance(waiting, InProgress)
    assert 0 < waiting.retry_after_ms <= HOLD_MS
    await confirm(under_test.holds, plain(first))
    assert await hold(under_test.holds, plain(again(first))) == Duplicate(first.id)
    other = said("b")
    assert await hold(under_test.holds, plain(other)) == other.id


async def test_a_hold_that_is_over_is_taken_over_with_its_id(under_test: HoldsUnderTest) -> None:
    first = said("a")
    assert await hold(under_test.holds, keyed(first)) == first.id
    await under_test.holds_end()
    assert await hold(under_test.holds, keyed(again(first))) == first.id
    assert isinstance(await hold(under_test.holds, keyed(again(first))), InProgress), "it is held anew"


async def test_another_body_under_the_same_key_is_a_conflict_held_or_done(under_test: HoldsUnderTest) -> None:
    first, other = said("a"), said("b")
    await hold(under_test.holds, keyed(first))
    assert await hold(under_test.holds, keyed(other)) == Conflicting(first.id)
    await confirm(under_test.holds, keyed(first))
    assert await hold(under_test.holds, keyed(other)) == Conflicting(first.id)
    assert await hold(under_test.holds, keyed(other, "k2")) == other.id, "what was refused holds nothing"


async def test_the_own_key_of_what_was_said_before_stands_for_the_first(under_test: HoldsUnderTest) -> None:
    """A repeat that comes when the content's window is over gets the answer of its first time."""
    first = said("a")
    await hold(under_test.holds, plain(first))
    await confirm(under_test.holds, plain(first))
    assert await hold(under_test.holds, keyed(again(first))) == Duplicate(first.id)
    assert await under_test.dedup.forget([by_content(first).key]) == 1
    assert await hold(under_test.holds, keyed(again(first))) == Duplicate(first.id)
    assert await hold(under_test.holds, keyed(said("b"))) == Conflicting(first.id)


async def test_the_own_key_of_what_is_being_said_is_let_go(under_test: HoldsUnderTest) -> None:
    """Nobody knows yet whether that becomes durable."""
    first, other = said("a"), said("b")
    await hold(under_test.holds, plain(first))
    assert isinstance(await hold(under_test.holds, keyed(again(first))), InProgress)
    assert await hold(under_test.holds, keyed(other)) == other.id


async def test_the_second_of_two_in_one_call_is_the_firsts_duplicate(under_test: HoldsUnderTest) -> None:
    first, other = said("a"), said("b")
    answers = await under_test.holds.hold([plain(first), plain(again(first)), keyed(other), keyed(again(other))])
    assert answers == [first.id, Duplicate(first.id), other.id, Duplicate(other.id)]


async def test_windows_end(under_test: HoldsUnderTest) -> None:
    first, later_on = said("a"), msgspec.structs.replace(said("a"), created_at=later(START, 2 * DAY_MS))
    await hold(under_test.holds, keyed(first))
    await confirm(under_test.holds, keyed(first))
    await under_test.windows_end()
    assert await hold(under_test.holds, keyed(later_on)) == later_on.id


async def test_a_window_can_be_ended(under_test: HoldsUnderTest) -> None:
    first = said("a")
    await hold(under_test.holds, keyed(first))
    await confirm(under_test.holds, keyed(first))
    keys = [claim.key for claim in keyed(first).claims]
    assert await under_test.dedup.forget(keys) == 2
    assert await under_test.dedup.forget(keys) == 0
    second = again(first)
    assert await hold(under_test.holds, keyed(second)) == second.id


async def test_of_many_at_once_one_holds(under_test: HoldsUnderTest) -> None:
    first = said("a")
    answers = await asyncio.gather(*(hold(under_test.holds, keyed(again(first))) for _ in range(50)))
    assert sum(isinstance(answer, bytes) for answer in answers) == 1
    assert sum(isinstance(answer, InProgress | Duplicate) for answer in answers) == 49


async def test_nothing_is_held_for_nothing(under_test: HoldsUnderTest) -> None:
    first = said("a")
    assert await hold(under_test.holds, NewNotification(first)) == first.id
    assert await under_test.holds.hold([]) == []
    await under_test.holds.confirm([])
