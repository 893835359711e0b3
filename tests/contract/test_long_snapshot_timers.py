"""A long snapshot and what is read by time: timers, what is tidied away, and a process that starts meanwhile.

As in test_long_snapshot.py blocks are counted, by EXPLAIN (ANALYZE, BUFFERS) of each statement.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import psycopg
import pytest
import pytest_asyncio

from tests.contract.bench import RETRY_MS, Bench, again, notification, sent, targets
from tests.contract.buffers import counted, does_not_grow
from tests.contract.claims import ClaimsUnderTest, PublishedUnderTest
from waypost.domain.time import DAY_MS, MINUTE_MS
from waypost.ports.work import Settled

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

PASSED = 300


@pytest_asyncio.fixture(params=["leased", "published, too"])
async def stack(
    request: pytest.FixtureRequest, emptied_postgres: str, redis_url: str
) -> AsyncIterator[ClaimsUnderTest]:
    """An empty store."""
    publishes = request.param != "leased"
    made = PublishedUnderTest(emptied_postgres, redis_url) if publishes else ClaimsUnderTest(emptied_postgres)
    await made.open()
    yield made
    await made.close()


@contextmanager
def dump(url: str) -> Iterator[None]:
    """Somebody reads for long, with a snapshot of now."""
    with psycopg.connect(url) as reading:
        reading.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reading.execute("SELECT count(*) FROM notification")
        yield


async def pass_through_timers(bench: Bench, count: int) -> None:
    """Each scheduled, then tried, then sent at its retry."""
    at = bench.clock.advance(1_000)
    later_on = [notification(bench.now, user=f"u{n}", scheduled_at=at) for n in range(count)]
    bench.clock.advance(1_000)
    await bench.accept(*later_on)
    await settled_all(bench, count, first=True)
    bench.clock.advance(RETRY_MS)
    await settled_all(bench, count, first=False)


async def settled_all(bench: Bench, count: int, *, first: bool) -> None:
    """Settle so many that are due, or leasable."""
    done = 0
    while done < count:
        lease = await bench.take(count)
        assert lease.items
        change = again(0, bench.now) if first else sent(0, bench.now, attempt=2)
        whole = targets(1) if first else None
        assert await bench.settle(lease, *(Settled(item.notification, (change,), whole) for item in lease.items)) == []
        done += len(lease.items)


async def test_timers_are_read_from_where_something_is_due(stack: ClaimsUnderTest, emptied_postgres: str) -> None:
    """A release amid much that was scheduled, retried and is over."""
    (worker,) = await stack.open_workers(1)
    bench = Bench(stack, worker)
    counts = []
    with dump(emptied_postgres):
        for passed in (PASSED, 3 * PASSED):
            await pass_through_timers(bench, passed)
            for _ in range(2):
                bench.clock.advance(MINUTE_MS)
                await bench.lease(1)
                await worker.promote_due(bench.now, 10)
            await bench.accepted(scheduled_at=bench.clock.advance(1))
            bench.clock.advance(1_000)
            with counted() as blocks:
                assert await worker.promote_due(bench.now, 10) == 1
            counts.append(blocks.total())
            await settled_all(bench, 1, first=True)
            bench.clock.advance(RETRY_MS)
            await settled_all(bench, 1, first=False)
    assert does_not_grow(*counts), (counts, dict(blocks))


async def test_what_is_written_late_is_found(stack: ClaimsUnderTest) -> None:
    """An outcome that was held while the store was away: its retry is due by then, behind what was looked through."""
    (worker,) = await stack.open_workers(1)
    bench = Bench(stack, worker)
    made = await bench.accepted()
    lease, item = await bench.take_one()
    tried_at = bench.now
    for _ in range(3):
        bench.clock.advance(MINUTE_MS)
        await worker.promote_due(bench.now, 10)
    assert await bench.settle_first(lease, item, 1, again(0, tried_at)) == []
    assert await bench.leasable() == [made.id]


async def test_what_is_tidied_away_is_looked_for_from_where_something_is_left(
    stack: ClaimsUnderTest, emptied_postgres: str
) -> None:
    """The journal that all have read, and entries of the outbox that were published."""
    (worker,) = await stack.open_workers(1)
    bench = Bench(stack, worker)
    counts = []
    with dump(emptied_postgres), psycopg.connect(emptied_postgres, autocommit=True) as writing:
        for passed in (PASSED, 3 * PASSED):
            for count in (10 * passed, 1):
                writing.execute(_READ_BY_ALL, {"count": count})
                writing.execute(_DONE, {"count": count, "now": bench.now})
                with counted() as blocks:
                    await tidy(stack, bench)
            counts.append(blocks.total())
    assert does_not_grow(*counts), (counts, dict(blocks))


_READ_BY_ALL = """\
INSERT INTO journal (position, at, moves)
SELECT (SELECT coalesce(max(position), 0) + (1 << 20) FROM journal) + n, 0, '\\x90'
FROM generate_series(1, %(count)s) AS n
"""
_DONE = """\
INSERT INTO outbox (notification_id, n, app, lane, added_at, published_at)
SELECT '\\x01', n, 'demo', 'normal', %(now)s, %(now)s FROM generate_series(1, %(count)s) AS n
"""


async def tidy(stack: ClaimsUnderTest, bench: Bench) -> None:
    """Drop all that is over."""
    bench.clock.advance(DAY_MS)
    while await bench.store.journal.drop_before(1 << 62, 1_000) == 1_000:
        pass
    if isinstance(stack, PublishedUnderTest):
        await stack.relay_of(bench.worker).tidy()
