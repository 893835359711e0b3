"""The kill table's rows for the stream as the queue: cut off before each step, from the lease to the acknowledgement.

A worker that is cut off loses its connections and its memory at that step. Whoever comes next must find the entry to be
sent whole, to be sent in part, or with all its outcomes; in the end it has one row and is acknowledged.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from tests.adapters.stream.owner import GROUP, STREAM, Owner, until
from tests.contract.clock import START
from tests.shows import shows
from tests.tables import AddRow
from waypost.compat.jobs_stream.log import TABLE as LOG_TABLE
from waypost.compat.jobs_stream.log import log_in
from waypost.compat.jobs_stream.pool import ConnectionPool
from waypost.compat.jobs_stream.settings import StreamSettings
from waypost.compat.jobs_stream.tokens import tokens_in
from waypost.compat.jobs_stream.work import LANE, Beside, StreamWork
from waypost.domain.channel import Channel
from waypost.domain.delivery import Target
from waypost.domain.ids import AppId
from waypost.domain.progress import Stale
from waypost.domain.settlement import Change, Sent
from waypost.ports.plugin import no_faults
from waypost.ports.work import Lease, Settled, WorkItem
from waypost.runtime.clock import SystemClock
from waypost.stores.redis.commands import Command, Redis, Reply
from waypost.stores.redis.jobs import RedisJobs
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Silent

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]

TABLE: Final = "killed between every two steps"
FCM: Final = Channel("fcm")
IDLE_MS: Final = 100
MOST_STEPS: Final = 60


class CutOff(BaseException):
    """The worker is no more."""


class Steps:
    """Counts what is asked of a server; the worker is cut off before step *last*."""

    def __init__(self, last: int) -> None:
        self.taken: list[str] = []
        self._last = last

    def next(self, name: str) -> None:
        """One more."""
        if len(self.taken) + 1 == self._last:
            raise CutOff
        self.taken.append(name)


class CountedRedis:
    """A Redis of which each pipeline is a step."""

    def __init__(self, redis: Redis, steps: Steps) -> None:
        self._redis, self._steps = redis, steps
        self.start, self.stop = redis.start, redis.stop

    async def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """See Redis."""
        self._steps.next(str(commands[0][0]))
        return await self._redis.execute(commands)


class CountedPool(ConnectionPool):
    """A pool of which each statement is a step, and the end of each transaction two: before it and after it."""

    steps = Steps(0)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        """See ConnectionPool."""
        async with super().connection() as connection:
            yield _Counted(connection, self.steps)


class _Counted:
    def __init__(self, connection: AsyncConnection[Any], steps: Steps) -> None:
        self._connection, self._steps = connection, steps
        self._depth = 0

    async def execute(self, *asked: Any) -> Any:
        self._steps.next(str(asked[0]).split(maxsplit=1)[0])
        return await self._connection.execute(*asked)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        self._depth += 1
        async with self._connection.transaction():
            yield
            self._depth -= 1
            if self._depth == 0:
                self._steps.next("COMMIT")
        if self._depth == 0:
            self._steps.next("after COMMIT")


class Worker:
    """A consumer of its own, with connections of its own."""

    def __init__(self, owner: Owner, last: int = 0, sure_ms: int = 60_000) -> None:
        """For half of *sure_ms* it asks nobody whether what it leased is still its own."""
        self.sure_ms = sure_ms
        self.steps = Steps(last)
        self._redis = SinglePrimary(RedisSettings(url=owner.redis_url, timeout_s=10), Silent())
        self._pool = CountedPool(owner.postgres_url, Silent())
        self._owner = owner

    async def open(self) -> None:
        """Connect, and look at the tables; that is no step."""
        await self._redis.start()
        log = await log_in(self._pool, LOG_TABLE, {})
        tokens = await tokens_in(self._pool, "public.device_token", {})
        beside = Beside(log, tokens, AppId("notifications-service"), FCM, no_faults)
        counted = CountedRedis(self._redis, self.steps)
        name, silent = uuid.uuid4().hex, Silent()
        self.jobs = RedisJobs(counted, counted, STREAM, GROUP, name, min_idle_ms=IDLE_MS, telemetry=silent)
        settings = StreamSettings(min_idle_ms=self.sure_ms)
        self.work = StreamWork(self.jobs, beside, settings, SystemClock(), silent)
        self._pool.steps = self.steps

    async def close(self) -> None:
        """Let go of everything, without another word."""
        self._pool.steps = Steps(0)
        await self._redis.stop()
        await self._pool.close()

    async def take(self) -> Lease:
        """What there is, also of those who were silent."""
        self.jobs.look_for_silent()
        return await self.work.lease(LANE, 10, START)


def answers(item: WorkItem, *numbers: int) -> Settled:
    """Those devices were sent to."""
    left = None if item.open_targets is None else {target.n: target for target in item.open_targets}
    listed = tuple(Target(n, owner_row, FCM) for n, owner_row in enumerate(_ROWS)) if left is None else None
    attempts = {n: 1 if left is None else left[n].attempt + 1 for n in numbers}
    changes = tuple(Change(n, attempt, Sent("taken"), START) for n, attempt in attempts.items())
    return Settled(item.notification, changes, listed)


_ROWS: Final[tuple[Any, ...]] = ("row-0", "row-1")


async def play(worker: Worker, settled: list[int]) -> None:
    """One entry with two devices: leased, settled in two parts."""
    lease = await worker.take()
    (item,) = lease.items
    for n in (0, 1):
        assert await worker.work.settle(lease, [answers(item, n)]) == []
        settled.append(n)


async def find(owner: Owner, settled: Sequence[int]) -> str:
    """Go on from what is there, to the end; the name of what was found."""
    worker = Worker(owner)
    await worker.open()
    found = "acknowledged"
    try:
        while owner.pending() or owner.unread():
            lease = await worker.take()
            for item in lease.items:
                left = [0, 1] if item.open_targets is None else [target.n for target in item.open_targets]
                assert set(left).isdisjoint(settled), "what was settled is not sent again"
                found = "all to be sent" if len(left) == 2 else "the rest to be sent"
                await worker.work.settle(lease, [answers(item, *left)])
            if not lease.items and found == "acknowledged":
                found = "found settled"
            await asyncio.sleep(IDLE_MS / 1000 / 4)  # idleness is what hands work over, and nothing tells of it
    finally:
        await worker.close()
    assert [row["status"] for row in owner.log()] == ["sent"], "one row, closed"
    assert owner.redis.keys("waypost:job:*") == [], "no note is left"
    return found


@shows("S2-20")
async def test_cut_off_before_every_step(owner: Owner, table: AddRow) -> None:
    """The rows from "leased … first byte sent" to "settled … acknowledged"."""
    found: list[str] = []
    steps: list[str] = []
    for n in range(1, MOST_STEPS):
        owner.redis.flushdb()
        owner.sql("DROP SCHEMA IF EXISTS notifications CASCADE")
        owner.redis.xgroup_create(STREAM, GROUP, 0, mkstream=True)
        owner.add(userId="ann", title="Hello")
        worker, settled = Worker(owner, n), list[int]()
        await worker.open()
        try:
            await play(worker, settled)
        except CutOff:
            steps = worker.steps.taken
        else:
            break
        finally:
            await worker.close()
        found.append(await find(owner, settled))
    assert "COMMIT" in steps
    assert set(found) == {"all to be sent", "the rest to be sent", "found settled"}
    table(TABLE, engine="stream", row="leased … acknowledged", kills=len(found), found=" | ".join(dict.fromkeys(found)))


async def test_a_frozen_worker_that_settles_late_changes_nothing(owner: Owner) -> None:
    """The row "frozen worker settles late": what it says is stale; the other one alone acknowledges."""
    owner.redis.xgroup_create(STREAM, GROUP, 0, mkstream=True)
    owner.add(userId="ann", title="Hello")
    frozen, other = Worker(owner, sure_ms=IDLE_MS), Worker(owner)
    await frozen.open()
    await other.open()
    try:
        lease = await frozen.take()
        (item,) = lease.items
        while not (taken := await other.take()).items:  # noqa: ASYNC110 - the first one's silence is what is waited for
            await asyncio.sleep(IDLE_MS / 1000 / 4)
        late = await frozen.work.settle(lease, [answers(item, 0, 1)])
        assert late == [Stale(item.notification.id, n, 1) for n in (0, 1)]
        assert await frozen.work.extend(lease, START) is False
        assert [row["status"] for row in owner.log()] == ["pending"]
        assert len(owner.pending()) == 1
        (mine,) = taken.items
        assert await other.work.settle(taken, [answers(mine, 0, 1)]) == []
        assert owner.pending() == {}
    finally:
        await frozen.close()
        await other.close()
    assert [(row["status"], row["sent"]) for row in owner.log()] == [("sent", 2)]


async def test_what_the_group_forgot_ends_with_the_answers_that_were_under_way(owner: Owner) -> None:
    """A replica that was behind takes over: another consumer is given the entry anew, and opens a row of its own."""
    owner.redis.xgroup_create(STREAM, GROUP, 0, mkstream=True)
    entry = owner.add(userId="ann", title="Hello")
    first, other = Worker(owner), Worker(owner)
    await first.open()
    await other.open()
    try:
        lease = await first.take()
        (item,) = lease.items
        owner.redis.flushdb()
        owner.redis.xadd(STREAM, {"userId": "ann", "title": "Hello"}, id=entry)
        owner.redis.xgroup_create(STREAM, GROUP, 0)
        assert await first.work.extend(lease, START) is False, "what was not begun is not begun any more"
        (again,) = (await other.take()).items
        assert await first.work.settle(lease, [answers(item, 0)]) == []
        assert await first.work.settle(lease, [answers(item, 1)]) == []
        assert sorted(row["status"] for row in owner.log()) == ["pending", "sent"]
        await other.work.settle(lease, [answers(again, 0, 1)])
        assert owner.pending() == {}
    finally:
        await first.close()
        await other.close()
    assert [row["status"] for row in owner.log()] == ["sent", "sent"]


async def test_what_the_bell_read_is_kept_alive_before_it_is_asked_for(owner: Owner) -> None:
    """While FCM is away nothing is asked for: what came to a waiting reader is held all the same, or comes twice."""
    owner.redis.xgroup_create(STREAM, GROUP, 0, mkstream=True)
    worker = Worker(owner)
    await worker.open()
    try:
        assert (await worker.take()).items == ()
        rung = asyncio.Event()
        worker.jobs.on_arrival = rung.set
        await worker.jobs.start()
        entry = owner.add(userId="ann", title="Hello")
        await rung.wait()
        silent_ms = await until(lambda: idle if (idle := idle_of(owner, entry)) > IDLE_MS else 0)
        await worker.work.say()
        assert idle_of(owner, entry) < silent_ms
        owner.redis.xclaim(STREAM, GROUP, "another", 0, [entry])
        assert await worker.jobs.take(10) == [], "it is another's by now"
    finally:
        await worker.jobs.silence()
        await worker.close()


def idle_of(owner: Owner, entry: str) -> int:
    """How long nobody said that it is worked on, in milliseconds."""
    (found,) = owner.redis.xpending_range(STREAM, GROUP, entry, entry, 1)
    idle: int = found["time_since_delivered"]
    return idle
