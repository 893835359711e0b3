"""What others keep open on the server, a dump or a forgotten BEGIN: no read of the queue grows with what passed since.

The server keeps all versions of rows that an old snapshot may still see, in the indexes, too. Counted are the blocks
that one look at the queue touches, not its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import psycopg
import pytest
import pytest_asyncio

from scripts.services.postgres import Postgres
from tests.contract.bench import Bench, notification
from tests.contract.buffers import does_not_grow
from tests.contract.claims import PublishedUnderTest
from tests.contract.sql import SqlUnderTest
from tests.contract.test_postgres_intake import held_up
from tests.engines import beside, run_sql
from tests.unit.adapters.noted import Noted
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.domain.time import MINUTE_MS, Instant
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql import held_back
from waypost.stores.sql.claims.lease import LEASE, NOTHING, LeaseRequest, first_waiting
from waypost.stores.sql.claims.promote import RELEASE, Timer, is_something_due
from waypost.stores.sql.claims.work import _WAITING
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.journal import SqlJournal
from waypost.stores.sql.outbox.relay import CLAIM, Claim
from waypost.stores.sql.postgres.connection import connect
from waypost.stores.sql.postgres.tail import ArrivalTail
from waypost.stores.sql.transaction import Transaction
from waypost.stores.sql.work import SqlWork
from waypost.telemetry import Event

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

PASSED = 300

_TOUCHED = """\
SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::bigint FROM pg_class
WHERE relname ~ '^(notification|outbox|arrival|claim)'
"""


@pytest_asyncio.fixture
async def opened(emptied_postgres: str) -> AsyncIterator[SqlUnderTest]:
    """An empty store."""
    made = SqlUnderTest(emptied_postgres)
    await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def stack(emptied_postgres: str, redis_url: str) -> AsyncIterator[PublishedUnderTest]:
    """An empty store that is published."""
    made = PublishedUnderTest(emptied_postgres, redis_url)
    await made.open()
    yield made
    await made.close()


async def pass_through(bench: Bench, count: int) -> None:
    """Accept, lease and settle so many."""
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(count)))
    done = 0
    while done < count:
        lease = await bench.lease(count)
        assert lease.items
        over = (Settled(item.notification, verdict=NotificationStatus.NO_TARGETS) for item in lease.items)
        assert await bench.settle(lease, *over) == []
        done += len(lease.items)


def touched(connection: Connection, look: Callable[[], object]) -> int:
    """The blocks of the queue's tables and indexes that *look* reads, in a transaction that is undone."""
    connection.execute("BEGIN")
    try:
        (before,) = connection.execute(_TOUCHED).fetchone()
        look()
        (after,) = connection.execute(_TOUCHED).fetchone()
        return int(after - before)
    finally:
        connection.execute("ROLLBACK")


async def test_a_worker_looks_for_fresh_work_from_where_it_stands(opened: SqlUnderTest, emptied_postgres: str) -> None:
    """Embedded: which apps have work, the next rows, the depth; also where it begins anew with other shards."""
    (worker,) = await opened.open_workers(1)
    assert isinstance(worker, SqlWork)
    tail, bench = worker._tail, Bench(opened, worker)
    assert isinstance(tail, ArrivalTail)

    def look(connection: Connection) -> int:
        def once() -> None:
            tail.start_over(worker._leasing)
            for app in list(tail.apps(connection, Lane.NORMAL)):
                assert tail.read(connection, Lane.NORMAL, app, 10, lambda _: False) == []
            assert tail.depth(connection, Lane.NORMAL, 1_000) == 0
            assert tail.oldest(connection) == {}

        once()
        return touched(connection, once)

    with psycopg.connect(emptied_postgres) as dump:
        dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        dump.execute("SELECT count(*) FROM notification")
        counts = []
        for passed in (PASSED, 3 * PASSED):
            await pass_through(bench, passed)
            counts.append(await worker._database.read_to_lease(look))
    assert does_not_grow(*counts), counts


async def test_claims_and_outbox_are_read_from_where_work_begins(
    stack: PublishedUnderTest, emptied_postgres: str
) -> None:
    """What is to be published, leased and released, and the depth."""
    (worker,) = await stack.open_workers(1)
    work, relay = stack.sender(worker), stack.relay_of(worker)
    bench = Bench(stack, worker)
    member, tail, reader = stack.member_of(worker), work._tail, connect(emptied_postgres)

    def look(connection: Connection) -> int:
        def once() -> None:
            now, since = stack.clock.now(), work._waiting_from.place(Lane.NORMAL)
            transaction = Transaction(connection, now, lambda _: None)
            since_due = work._due_from.at or Instant(0)
            timer = Timer(now, 10, work._shards.owned, (), clean_among=work._clean_among, since=since_due)
            assert CLAIM.run(transaction, [Claim(member, 10, relay._floor.at)]) == [[]]
            fresh = tuple((key[1], after) for key, after in tail._floors.items() if key[0] is Lane.NORMAL)
            leased = LEASE.run(transaction, [LeaseRequest(member, Lane.NORMAL, 10, since, fresh=fresh)])
            assert [each.items for each in leased] == [NOTHING.items]
            assert first_waiting(connection, Lane.NORMAL, since) is None
            assert not is_something_due(connection, timer)[0]
            RELEASE.run(transaction, [timer])
            assert connection.execute(_WAITING.replace("{part}", ""), (Lane.NORMAL, since, 1_000)).fetchone() == (0,)

        return touched(connection, once)

    with psycopg.connect(emptied_postgres) as dump:
        dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        dump.execute("SELECT count(*) FROM claim")
        counts = []
        for passed in (PASSED, 3 * PASSED):
            await pass_through(bench, passed)
            while await relay.relay():
                pass
            for _ in range(3):  # lookers who find nothing more to do note it
                stack.clock.advance(2 * MINUTE_MS)
                await relay.relay()
                await bench.lease(1)
                await worker.depth(Lane.NORMAL)
                await worker.promote_due(stack.clock.now(), 10)
            counts.append(look(reader))
    reader.close()
    assert does_not_grow(*counts), counts


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in this database", "in another"])
async def test_a_write_transaction_that_was_forgotten_stops_neither_work_nor_reports(
    elsewhere: bool, opened: SqlUnderTest, emptied_postgres: str
) -> None:
    """A number that others have been given and keep holds back nothing of ours; one of our own does."""
    one, other = await opened.open_workers(2)
    bench, journal = Bench(opened, one), SqlJournal(opened._opened.database)
    with psycopg.connect(beside(emptied_postgres, "postgres") if elsewhere else emptied_postgres) as forgotten:
        forgotten.execute("CREATE TEMPORARY TABLE forgotten (n int)")
        for count in range(1, 4):
            made = await bench.accepted(user=f"u{count}")
            leased = [
                item.notification.id for each in (one, other) for item in (await Bench(opened, each).take()).items
            ]
            assert leased == [made.id]
            assert len(await journal.read(0, 10)) == count
    with held_up(opened, other) as reached:
        late = asyncio.ensure_future(other.accept([NewNotification(notification(bench.now, user="late"))]))
        await asyncio.to_thread(reached.wait)
        await bench.accepted(user="after")
        assert len(await journal.read(0, 10)) == 3
    await late
    assert len(await journal.read(0, 10)) == 5


async def test_reports_wait_for_a_transaction_of_the_version_before(
    opened: SqlUnderTest, emptied_postgres: str
) -> None:
    """It shares no lock, but says whose it is: what it writes late comes before what is on record already."""
    (worker,) = await opened.open_workers(1)
    bench, journal = Bench(opened, worker), SqlJournal(opened._opened.database)
    await bench.accepted(user="before")
    with psycopg.connect(emptied_postgres, application_name="waypost") as of_before:
        of_before.execute("INSERT INTO journal (at, moves) VALUES (1, '\\x90')")
        await bench.accepted(user="after")
        assert len(await journal.read(0, 10)) == 1
    assert [len(row.moves) for row in await journal.read(0, 10)] == [1, 0, 1]


async def test_whose_transaction_is_open_for_long_is_said_once(
    postgres_alone: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another database of the server: its process, its age, and the database."""
    run_sql(postgres_alone.url, "DROP DATABASE IF EXISTS held WITH (FORCE)", "CREATE DATABASE held")
    opened = SqlUnderTest(beside(postgres_alone.url, "held"))
    await opened.open()
    monkeypatch.setattr(held_back, "TOO_LONG_S", 0)
    noted = Noted()
    opened._opened.database.telemetry = noted
    looking = held_back.HeldBack(opened._opened.database)
    with psycopg.connect(postgres_alone.url) as forgotten:
        forgotten.execute("CREATE TEMPORARY TABLE forgotten (n int)")
        pid = forgotten.info.backend_pid
        for _ in range(2):
            await looking.look()
    told = [fields for fields in noted.fields_of(Event.STORE_HELD_BACK) if fields["pid"] == pid]
    assert [(fields["database"], fields["age_s"]) for fields in told] == [("postgres", 0)]
    await opened.close()
