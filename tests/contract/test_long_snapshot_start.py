"""A long snapshot, and a process that starts or comes back while it is open: it begins where others stand.

As in test_long_snapshot_timers.py blocks are counted, by EXPLAIN (ANALYZE, BUFFERS) of each statement.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import psycopg
import pytest
import pytest_asyncio

from tests.contract.bench import Bench, notification
from tests.contract.buffers import counted, does_not_grow
from tests.contract.claims import ClaimsUnderTest
from tests.contract.sql import SqlUnderTest
from tests.contract.test_long_snapshot import pass_through
from tests.contract.test_long_snapshot_timers import dump
from tests.contract.test_postgres_intake import held_up
from tests.journeys.harness import until
from waypost.domain.notification import Lane
from waypost.domain.time import MINUTE_MS
from waypost.ports.work import NewNotification, Work
from waypost.stores.sql import journal as journal_module
from waypost.stores.sql.journal import SqlJournal

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

PASSED = (1_000, 20_000)

_FRESH = """\
INSERT INTO notification
    (seq, id, app, caller, user_id, shard, lane, kind, urgency, guarantee, status, due_at, created_at, expires_at,
     ttl_ms, round)
SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint << 20) + n, uuid_send(gen_random_uuid()), 'demo', 'c',
    'u', 0, 'normal', 'visible', 'normal', 'at_most_once', 'pending', 0, 1, 1, 1, 0
FROM generate_series(1, %(count)s) AS n
"""
_WAITED = """\
INSERT INTO claim (notification_id, n, app, lane, free_at)
SELECT uuid_send(gen_random_uuid()), 0, 'demo', 'normal', %(now)s FROM generate_series(1, %(count)s)
"""
_LEASED = "DELETE FROM claim WHERE n = 0"
_OVER = "UPDATE notification SET due_at = NULL, status = 'sent' WHERE caller = 'c' AND due_at = 0"


@pytest_asyncio.fixture(params=[SqlUnderTest, ClaimsUnderTest], ids=["by shards", "by claims"])
async def opened(request: pytest.FixtureRequest, emptied_postgres: str) -> AsyncIterator[SqlUnderTest]:
    """An empty store."""
    made: SqlUnderTest = request.param(emptied_postgres)
    await made.open()
    yield made
    await made.close()


async def pass_many(bench: Bench, url: str, count: int) -> None:
    """Let so many rows pass, the last of them by a worker, and let it go on for a while with nothing to do."""
    with psycopg.connect(url, autocommit=True) as writing:
        writing.execute(_FRESH, {"count": count})
        writing.execute(_OVER)
        writing.execute(_WAITED, {"count": count, "now": bench.now})
        writing.execute(_LEASED)
        writing.execute("ANALYZE notification, claim")  # else a plan for an empty table reads it from end to end
    await pass_through(bench, 3)
    for _ in range(3):
        bench.clock.advance(2 * MINUTE_MS)
        await look(bench.worker, bench)


async def recorded(opened: SqlUnderTest, worker: Work) -> None:
    """Let the worker record where it stands."""
    with psycopg.connect(opened._settings.url, autocommit=True) as writing:
        writing.execute("DELETE FROM tail")
        await worker.promote_due(opened.clock.advance(MINUTE_MS), 10)

        async def is_recorded() -> bool:
            return writing.execute("SELECT FROM tail").fetchone() is not None

        await until(is_recorded, "the record of where it stands")


async def started_again(opened: SqlUnderTest, *workers: Work) -> Bench:
    """End these workers, and start one."""
    for worker in workers:
        await opened.crash(worker)
    (worker,) = await opened.open_workers(1)
    return Bench(opened, worker)


async def look(worker: Work, bench: Bench) -> None:
    """Look at all of the queue."""
    for lane in Lane:
        assert (await worker.lease(lane, 10, bench.now)).items == ()
        assert await worker.depth(lane) == 0
    await worker.promote_due(bench.now, 10)


async def test_a_worker_that_starts_begins_where_others_stand(opened: SqlUnderTest, emptied_postgres: str) -> None:
    """Its first look at the queue, which is all over, touches as much whatever has passed."""
    (worker,) = await opened.open_workers(1)
    counts = []
    with dump(emptied_postgres):
        for passed in PASSED:
            await pass_many(Bench(opened, worker), emptied_postgres, passed)
            await recorded(opened, worker)
            await opened.crash(worker)
            (worker,) = await opened.open_workers(1)
            with counted() as blocks:
                await look(worker, Bench(opened, worker))
            counts.append(blocks.total())
    assert does_not_grow(*counts), (counts, [(sql[:90], n) for sql, n in blocks.most_common(8)])


async def test_what_was_open_when_it_was_recorded_is_found(opened: SqlUnderTest) -> None:
    """A commit that comes late has lower numbers than all that passed meanwhile; another comes after the record."""
    (well,) = await opened.open_workers(1)
    (frozen,) = await opened.open_workers(1)
    bench = Bench(opened, well)
    with held_up(opened, frozen) as reached:
        late = notification(bench.now, user="late")
        accepting = asyncio.ensure_future(frozen.accept([NewNotification(late)]))
        await asyncio.to_thread(reached.wait)
        waits = await bench.accepted(user="waits")
        await recorded(opened, well)
        after = await bench.accepted(user="after")
    await accepting
    started = await started_again(opened, well, frozen)
    assert set(await started.leasable()) == {late.id, waits.id, after.id}


async def test_a_place_is_not_believed_once_what_it_had_not_heard_of_was_dropped(
    opened: SqlUnderTest, emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody recorded for long, and somebody tidied away what was said of arrivals."""
    (worker,) = await opened.open_workers(1)
    bench, journal = Bench(opened, worker), SqlJournal(opened._opened.database)
    await recorded(opened, worker)
    made = await bench.accepted()
    looks_s = itertools.count(0, 121)

    async def are_dropped() -> bool:
        now_s = next(looks_s)
        monkeypatch.setattr(journal_module, "_now_s", lambda: now_s)
        await journal.drop_before(0, 1)
        with psycopg.connect(emptied_postgres) as connection:
            return connection.execute("SELECT count(*) FROM arrival").fetchone() == (0,)

    await until(are_dropped, "the end of what else was open on the server")
    assert await (await started_again(opened, worker)).leasable() == [made.id]


@pytest.mark.parametrize(
    "place",
    ["'{}'", """replace(place, '"server":', '"server":1')"""],
    ids=["written otherwise by a newer version", "of another server"],
)
async def test_a_place_that_says_nothing_here_is_not_believed(
    opened: SqlUnderTest, emptied_postgres: str, place: str
) -> None:
    """All is read from the beginning: numbers of transactions mean something on their server alone."""
    (worker,) = await opened.open_workers(1)
    bench = Bench(opened, worker)
    await recorded(opened, worker)
    made = await bench.accepted()
    with psycopg.connect(emptied_postgres, autocommit=True) as writing:
        writing.execute("DELETE FROM arrival")
        assert writing.execute(f"UPDATE tail SET place = {place}").rowcount == 1  # noqa: S608 - of this test
    assert await (await started_again(opened, worker)).leasable() == [made.id]
