"""Accepting on PostgreSQL: by any number of processes at once, in three round trips, and nobody waits for anybody."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import pairwise

import psycopg
import pytest
import pytest_asyncio

from scripts.services.postgres import Postgres
from scripts.services.service import HOST
from tests.contract.balanced import check_balance
from tests.contract.bench import Bench, by_content, by_key, notification
from tests.contract.sql import SqlUnderTest, settings_of
from tests.journeys.harness import until
from tests.proxy import before
from waypost.domain.time import HOUR_MS
from waypost.ports.work import Acceptance, Accepted, Duplicate, NewNotification, Work
from waypost.stores.sql import journal as journal_module
from waypost.stores.sql.accept import accept_kind
from waypost.stores.sql.journal import SqlJournal
from waypost.stores.sql.outbox.entries import write_arrivals
from waypost.stores.sql.postgres import tail
from waypost.stores.sql.state import StoreState
from waypost.stores.sql.work import SqlWork

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]


@pytest_asyncio.fixture
async def opened(emptied_postgres: str) -> AsyncIterator[SqlUnderTest]:
    """An empty opened."""
    made = SqlUnderTest(emptied_postgres)
    await made.open()
    yield made
    await made.close()


@pytest.mark.parametrize("publishes", [False, True])
async def test_a_batch_is_accepted_in_three_round_trips(
    publishes: bool, postgres: Postgres, emptied_postgres: str
) -> None:
    """Whatever it claims, and however much it is: counted on the wire."""
    async with before(HOST, postgres.ports[0]) as network:
        network.is_counting = True
        under_test = SqlUnderTest(emptied_postgres.replace(f":{postgres.ports[0]}/", f":{network.port}/"))
        await under_test.open()
        (worker,) = await under_test.open_workers(1)
        database = under_test._workers[id(worker)].database
        assert isinstance(worker, SqlWork)
        accept = accept_kind(6, lambda made, fresh, _: write_arrivals(made, fresh)) if publishes else worker._accept

        async def is_well() -> bool:
            return database.state is StoreState.OK

        await until(is_well, "it is connected to the server")  # which it looked for on the loop that the proxy needs

        async def accepted(count: int) -> int:
            made = [notification(under_test.clock.now(), user=f"u{n}", body=f"{n}") for n in range(count)]
            arrivals = [NewNotification(each, (by_key(each, each.id.hex()), by_content(each))) for each in made]
            answers = await database.commits.submit(accept, arrivals)
            assert all(isinstance(each, Accepted | Duplicate) for each in answers)
            return network.round_trips[_port_of(database._writer.connection.raw)]  # type: ignore[attr-defined]  # PostgreSQL's

        counts = [await accepted(count) for count in (2, 2, 2, 1, 500)]  # the first makes tables, the next prepare
        assert [after - before for before, after in pairwise(counts)][-2:] == [3, 3]
        await under_test.close()


def _port_of(raw: psycopg.Connection) -> int:
    with socket.fromfd(raw.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM) as end:
        return int(end.getsockname()[1])


@contextmanager
def held_up(opened: SqlUnderTest, worker: Work) -> Iterator[threading.Event]:
    """The worker stands still before its COMMIT, as a process that is stopped there; set once it does."""
    reached, goes_on = threading.Event(), threading.Event()

    def stand_still(sql: str) -> None:
        if sql == "COMMIT":
            reached.set()
            goes_on.wait()

    opened.watch_writer(worker, stand_still, lambda: None)
    try:
        yield reached
    finally:
        goes_on.set()


async def test_whoever_stands_still_amid_a_commit_stops_nobody(opened: SqlUnderTest) -> None:
    """Of the same app, in the same lane: others accept and deliver meanwhile; what comes late is delivered, too."""
    frozen, well = await opened.open_workers(2)
    bench = Bench(opened, well)
    with held_up(opened, frozen) as reached:
        late = notification(bench.now, user="late")
        accepting = asyncio.ensure_future(frozen.accept([NewNotification(late, (by_key(late, "late"),))]))
        await asyncio.to_thread(reached.wait)
        made = [notification(bench.now, user=f"u{n}") for n in range(20)]
        for each in made:
            await well.accept([NewNotification(each, (by_key(each, each.user_id),))])
        leased = [
            item.notification.id for worker in (frozen, well) for item in (await Bench(opened, worker).take()).items
        ]
        assert set(leased) == {each.id for each in made}
    assert await accepting == [Accepted(late.id)]
    leased = [item.notification.id for worker in (frozen, well) for item in (await Bench(opened, worker).take()).items]
    assert leased == [late.id]


async def test_what_all_have_heard_of_is_forgotten(
    opened: SqlUnderTest, emptied_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two minutes after it was over; a worker that has not looked for a minute begins again and misses nothing."""
    bench, journal = Bench(opened, (await opened.open_workers(1))[0]), SqlJournal(opened._opened.database)
    await bench.take()
    made = await bench.accepted()
    looks_s = itertools.count(0, 119)

    async def left() -> int:
        now_s = next(looks_s)
        monkeypatch.setattr(journal_module, "_now_s", lambda: now_s)
        await journal.drop_before(0, 1)
        with psycopg.connect(emptied_postgres) as connection:
            return int((connection.execute("SELECT count(*) FROM arrival").fetchone() or ())[0])

    assert [await left(), await left()] == [1, 1]

    async def forgotten() -> bool:
        return await left() == 0

    await until(forgotten, "the end of what else was open on the server")
    later_s = tail._now_s() + 61
    monkeypatch.setattr(tail, "_now_s", lambda: later_s)
    assert await bench.leasable() == [made.id]


async def test_one_key_on_both_sides_of_a_change_of_slice_waits_for_the_other(
    opened: SqlUnderTest, emptied_postgres: str
) -> None:
    """The first is not committed when the second asks, in the next partition: it is waited for, and then found."""
    before, after = await opened.open_workers(2)
    partition_ms = settings_of("").dedup_partition_h * HOUR_MS
    opened.clock.advance(partition_ms - opened.clock.now() % partition_ms - 1)
    first = notification(opened.clock.now())
    await before.accept([NewNotification(notification(opened.clock.now(), user="other"), (by_key(first, "other"),))])
    with held_up(opened, before) as reached:
        early = asyncio.ensure_future(before.accept([NewNotification(first, (by_key(first, "k"),))]))
        await asyncio.to_thread(reached.wait)
        opened.clock.advance(2)
        second = asyncio.ensure_future(
            after.accept([NewNotification(notification(opened.clock.now()), (by_key(first, "k"),))])
        )
        await until(lambda: _is_waited_for(emptied_postgres), "the second waits for the first")
    answers: list[Acceptance] = [*(await early), *(await second)]
    assert answers == [Accepted(first.id), Duplicate(first.id)]


async def _is_waited_for(url: str) -> bool:
    sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'transactionid' AND datname = current_database()"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        return await (await connection.execute(sql)).fetchone() is not None


async def test_keys_are_taken_again_where_the_server_lost_their_slice(
    opened: SqlUnderTest, emptied_postgres: str
) -> None:
    """A standby that was behind has taken over: the process remembers a table that is not there."""
    (worker,) = await opened.open_workers(1)
    bench = Bench(opened, worker)
    first, second = notification(bench.now), notification(bench.now)
    assert await worker.accept([NewNotification(first, (by_key(first, "one"),))]) == [Accepted(first.id)]
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        for (number,) in connection.execute("DELETE FROM dedup_slice RETURNING slice").fetchall():
            connection.execute(f"DROP TABLE dedup_{number}".encode())
    assert await worker.accept([NewNotification(second, (by_key(second, "two"),))]) == [Accepted(second.id)]
    again = notification(bench.now)
    answers = await worker.accept([NewNotification(again, (by_key(second, "two"),))])
    assert answers == [Duplicate(second.id)]


async def test_one_id_that_two_accept_at_once_is_accepted_once(opened: SqlUnderTest, emptied_postgres: str) -> None:
    one, other = await opened.open_workers(2)
    made = notification(opened.clock.now())
    with held_up(opened, one) as reached:
        early = asyncio.ensure_future(one.accept([NewNotification(made)]))
        await asyncio.to_thread(reached.wait)
        late = asyncio.ensure_future(other.accept([NewNotification(made)]))
        await until(lambda: _is_waited_for(emptied_postgres), "the second waits for the first")
    assert [*(await early), *(await late)] == [Accepted(made.id), Accepted(made.id, new=False)]


async def test_counters_become_one_without_what_others_count_meanwhile_being_lost(
    opened: SqlUnderTest, emptied_postgres: str
) -> None:
    """Retention adds up the counters while a commit that moves them is open: that one counts, too."""
    (worker,) = await opened.open_workers(1)
    await worker.accept([NewNotification(notification(opened.clock.now()))])
    with held_up(opened, worker) as reached:
        accepting = asyncio.ensure_future(worker.accept([NewNotification(notification(opened.clock.now()))]))
        await asyncio.to_thread(reached.wait)
        adding_up = asyncio.ensure_future(opened.retention.drop_whole(opened.clock.now()))
        await until(lambda: _is_waited_for(emptied_postgres), "retention waits for the commit")
    await asyncio.gather(accepting, adding_up)
    await check_balance(opened)
    assert sum((await opened.views.balance()).values()) == 2
