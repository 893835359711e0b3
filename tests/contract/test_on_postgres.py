"""What PostgreSQL alone must be asked: plans, partitions, updates in place, lost ownership, commits in doubt."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import msgspec
import psycopg
import pytest
import pytest_asyncio

from scripts.services.postgres import Postgres
from scripts.services.service import HOST
from tests.adapters.sql.test_plans import LISTS, OF_ONE_APP
from tests.contract.bench import Bench, by_key, notification, sent, targets
from tests.contract.sql import SqlUnderTest, settings_of
from tests.journeys.harness import until
from tests.proxy import before
from tests.shows import shows
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.progress import Stale
from waypost.domain.time import HOUR_MS
from waypost.ports.work import Accepted, Duplicate, NewNotification, Settled
from waypost.stores.sql import accept, amend, devices, due_pages, lease, pending_changes, plain_settlements, promote
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.postgres.connection import connect
from waypost.stores.sql.postgres.statements import over_list, translated
from waypost.stores.sql.sharing import SqlOwnership
from waypost.stores.sql.units import Leasing
from waypost.stores.sql.work import SqlWork

pytestmark = pytest.mark.engines

HOT = {
    "newest id": accept._NEWEST,
    "fresh rows": lease.READ,
    "apps with fresh rows": lease._APPS,
    "first pages of what is due": due_pages._statement(Leasing(frozenset({3, 5}), frozenset({7}))),
    "scheduled": promote._WHOLE,
    "due receipts": promote._DUE,
    "scheduled of an app": promote._WHOLE_OF_APP,
    "due receipts of an app": promote._DUE_OF_APP,
    "apps with something scheduled": promote._APPS_DUE[0],
    "apps with receipts due": promote._APPS_DUE[1],
    "lifted receipts": promote._LIFTED,
    "notifications": promote._NOTIFICATIONS,
    "older ones of a collapse key": amend._OLDER,
    "receipts": promote._RECEIPTS,
    "what is settled": pending_changes._FIND + " ORDER BY id FOR UPDATE",
    "what went straight": plain_settlements._FINISHED.format(key="id"),
    "conditions in use": promote._CONDITIONS,
    **{f"list: {name}": sql for name, sql in LISTS.items()},
    "devices of users": devices._FOR_USERS,
}


_ANY_OF_TYPE = {"bytea": "'\\xff'", "bigint": "1", "integer": "1", "text": "'a'"}
"""With NULL in its place a condition is never met, and the plan is empty."""


@shows("S3-69")
@pytest.mark.parametrize("name", sorted(HOT))
def test_a_hot_statement_reads_no_table_from_end_to_end(name: str, emptied_postgres: str) -> None:
    """Nor sorts, where it is a list: in the plan for any values, of a server that does so only without an index."""
    connection = connect(emptied_postgres)
    connection.raw.execute(b"SET plan_cache_mode = force_generic_plan")
    connection.raw.execute(b"SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off")
    sql = HOT[name].replace("{shards}", lease.in_shards(frozenset({3, 5})))
    sql = sql.replace("{devices_of_users}", connection.dialect.devices_of_users)
    if "{keys}" in sql:
        sql = sql.replace(" IN ({keys})", " = ANY('{\\x01}'::bytea[])")
    text = translated(sql).decode()
    connection.raw.execute(f"PREPARE hot AS {text}".encode())
    ((types,),) = connection.raw.execute(b"SELECT parameter_types::text[] FROM pg_prepared_statements").fetchall()
    bound = ", ".join(_ANY_OF_TYPE.get(each, "NULL") for each in types)
    plan = connection.raw.execute(f"EXPLAIN EXECUTE hot{f'({bound})' if types else ''}".encode()).fetchall()
    connection.close()
    steps = [row[0] for row in plan]
    assert not any("Seq Scan" in step for step in steps), steps
    if name.removeprefix("list: ") in OF_ONE_APP:
        assert any("Cond: ((app = " in step for step in steps), steps
        assert not any("Sort  (" in step for step in steps), steps


@pytest.mark.parametrize("analysed", [False, True])
def test_the_devices_of_two_users_are_all_that_is_read_for_them(analysed: bool, emptied_postgres: str) -> None:
    """Of a registry that the server knows nothing of yet, or knows to be small."""
    connection = connect(emptied_postgres)
    connection.raw.execute(_MANY_DEVICES.encode())
    if analysed:
        connection.raw.execute(b"ANALYZE device")
    sql = devices._FOR_USERS.format(devices_of_users=connection.dialect.devices_of_users)
    bound = ("""[["demo","user-7"],["demo","user-8"]]""",)
    ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", bound).fetchall()
    connection.close()
    read = [step["Actual Rows"] * step["Actual Loops"] for step in _steps(plan[0]["Plan"]) if "Relation Name" in step]
    assert read == [4], plan


_MANY_DEVICES = """\
INSERT INTO device (app, user_id, device_id, platform, token, token_hash, token_use, registered_at, last_seen_at,
    token_updated_at, active)
SELECT 'demo', 'user-' || n, 'device-' || twice, 'android', n || '-' || twice, sha256((n || '-' || twice)::bytea), '',
    1, 1, 1, 1
FROM generate_series(1, 1000) AS n, generate_series(1, 2) AS twice
"""


def _steps(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for inner in step.get("Plans", ()):
        yield from _steps(inner)


def test_a_get_looks_into_one_month(emptied_postgres: str) -> None:
    made = notification(SqlUnderTest("").clock.now())
    connection = connect(emptied_postgres)
    sql = translated(over_list(pending_changes._FIND)).decode().replace("$1", f"'{{\\\\x{made.id.hex()}}}'::bytea[]")
    steps = [row[0] for row in connection.raw.execute(f"EXPLAIN {sql}".encode()).fetchall()]
    connection.close()
    assert set(re.findall(r" on notification_([0-9]+_[0-9]+)", "\n".join(steps))) == {"2027_01"}, steps


@pytest_asyncio.fixture
async def alone(emptied_postgres: str) -> AsyncIterator[SqlUnderTest]:
    """An empty store, on PostgreSQL alone."""
    opened = SqlUnderTest(emptied_postgres)
    await opened.open()
    yield opened
    await opened.close()


def asked(url: str, sql: str) -> list[tuple[object, ...]]:
    """The answer to a question beside the store."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


@shows("S1-62", "S1-64", "S3-77")
@pytest.mark.asyncio
async def test_rows_lie_in_their_month(alone: SqlUnderTest, emptied_postgres: str) -> None:
    bench = Bench(alone, (await alone.open_workers(1))[0])
    made = await bench.accepted()
    lease_, item = await bench.take_one()
    await bench.settle(lease_, Settled(item.notification, (sent(0, bench.now),), targets(1)))
    assert (await bench.detail(made)).receipts
    found = "SELECT tableoid::regclass::text FROM notification UNION SELECT tableoid::regclass::text FROM receipt"
    assert asked(emptied_postgres, f"{found} ORDER BY 1") == [("notification_2027_01",), ("receipt_2027_01",)]


@shows("S1-64")
@pytest.mark.asyncio
async def test_the_receipts_of_a_commit_travel_as_one_copy(alone: SqlUnderTest) -> None:
    """However many they are, they are as many statements as those of one notification (requirement S1-64)."""
    bench = Bench(alone, (await alone.open_workers(1))[0])
    said: dict[int, list[str]] = {}
    statements: list[str] = []
    alone.watch_writer(bench.worker, statements.append, lambda: None)
    for count in (1, 200):
        await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(count)))
        lease_ = await bench.take(count)
        statements.clear()
        outcomes = (sent(0, bench.now), sent(1, bench.now))
        assert (
            await bench.settle(lease_, *(Settled(it.notification, outcomes, targets(2)) for it in lease_.items)) == []
        )
        said[count] = _of_the_copy(statements)
    assert len(said[200]) == len(said[1])
    for made in said.values():
        assert len([each for each in made if each.startswith("COPY receipt ")]) == 1
        assert [each for each in made if "INSERT INTO receipt" in each] == []


def _of_the_copy(statements: Sequence[str]) -> list[str]:
    """List those of the transaction that copies receipts; the one before may still end, and another follow."""
    at = next(n for n, each in enumerate(statements) if each.startswith("COPY receipt "))
    begins = [n for n, each in enumerate(statements) if each.startswith("BEGIN")]
    first = max(n for n in begins if n < at)
    after = [n for n in begins if n > at]
    return list(statements[first : after[0] if after else None])


@shows("S1-104")
@pytest.mark.asyncio
async def test_what_was_taken_over_is_settled_by_its_new_owner_alone(
    alone: SqlUnderTest, emptied_postgres: str
) -> None:
    """The first worker was frozen for longer than its lease; it wakes with an outcome in its hands."""
    (frozen,) = await alone.open_workers(1)
    slow = Bench(alone, frozen)
    made = await slow.accepted()
    held, item = await slow.take_one()
    asked(emptied_postgres, "DELETE FROM member RETURNING id")
    (successor,) = await alone.open_workers(1)
    fast = Bench(alone, successor)
    taken, again = await fast.take_one()
    assert again.notification.id == made.id
    late = Settled(item.notification, (sent(0, slow.now),), targets(1))
    assert await slow.settle(held, late) == [Stale(made.id, 0, 1)]
    assert (await fast.receipts(made)) == ()
    assert await fast.settle(taken, Settled(again.notification, (sent(0, fast.now),), targets(1))) == []


@pytest.mark.asyncio
async def test_what_is_handed_over_while_it_is_read_is_left_to_its_new_owner(
    alone: SqlUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the shard was leased yet, so that it could go; what the read brings is the other's."""
    (leaving,) = await alone.open_workers(1)
    made = await Bench(alone, leaving).accepted()
    database, shards = alone._workers[id(leaving)].database, alone._workers[id(leaving)].shards
    assert isinstance(leaving, SqlWork)
    ownership, read = SqlOwnership(shards, leaving), database.read_to_lease

    async def read_and_hand_over(query: Callable[[Connection], Any]) -> Any:
        rows = await read(query)
        ownership.offer(ownership.owned())
        await ownership.hand_over()
        return rows

    monkeypatch.setattr(database, "read_to_lease", read_and_hand_over)
    assert (await leaving.lease(made.lane, 1, alone.clock.now())).items == ()
    (successor,) = await alone.open_workers(1)
    _, item = await Bench(alone, successor).take_one()
    assert item.notification.id == made.id


@pytest.mark.asyncio
async def test_one_key_on_both_sides_of_a_change_of_slice_is_accepted_once(alone: SqlUnderTest) -> None:
    """Two processes at one moment, whose clocks lie on either side of it."""
    before, after = await alone.open_workers(2)
    partition_ms = settings_of("").dedup_partition_h * HOUR_MS
    alone.clock.advance(partition_ms - alone.clock.now() % partition_ms - 1)
    first = notification(alone.clock.now())
    early = asyncio.ensure_future(before.accept([NewNotification(first, (by_key(first, "k"),))]))
    await asyncio.sleep(0)
    alone.clock.advance(2)
    second = notification(alone.clock.now())
    answers = [*(await after.accept([NewNotification(second, (by_key(first, "k"),))])), *(await early)]
    accepted = [each.id for each in answers if isinstance(each, Accepted)]
    assert len(accepted) == 1
    assert [each.first_id for each in answers if isinstance(each, Duplicate)] == accepted


@pytest.mark.asyncio
async def test_once_a_server_is_known_to_be_away_requests_are_refused_before_anything_is_waited_for(
    postgres: Postgres, emptied_postgres: str
) -> None:
    """The coroutine ends without a turn of the loop: nobody's request hangs, and no thread is asked."""
    async with before(HOST, postgres.ports[0]) as network:
        under_test = SqlUnderTest(emptied_postgres.replace(f":{postgres.ports[0]}/", f":{network.port}/"))
        await under_test.open()
        bench = Bench(under_test, (await under_test.open_workers(1))[0])

        async def accepts() -> bool:
            with contextlib.suppress(Unavailable):
                return bool(await bench.accepted())
            return False

        await until(accepts, "it accepts")
        async with network.refusing():
            with pytest.raises(Unavailable):
                await bench.accepted()
            with pytest.raises(Unavailable) as refused:
                bench.accept(notification(bench.now)).send(None)
            assert refused.value.code is ErrorCode.STORAGE_AWAY
        await until(accepts, "it accepts again")
        await under_test.close()


@shows("S3-104")
@pytest.mark.asyncio
async def test_a_server_that_hangs_is_waited_for_once_and_opens_the_way_when_it_answers(
    postgres: Postgres, emptied_postgres: str
) -> None:
    """Past the threshold (``lock_timeout_s``) whoever comes is refused at the door (requirement S3-104)."""
    async with before(HOST, postgres.ports[0]) as network:
        under_test = SqlUnderTest(emptied_postgres.replace(f":{postgres.ports[0]}/", f":{network.port}/"))
        under_test._settings = msgspec.structs.replace(under_test._settings, lock_timeout_s=0.5)
        await under_test.open()
        bench = Bench(under_test, (await under_test.open_workers(1))[0])
        commits = under_test._workers[id(bench.worker)].database.commits

        async def accepts() -> bool:
            with contextlib.suppress(Unavailable):
                return commits.pressure().share < 1 and bool(await bench.accepted())
            return False

        await until(accepts, "it accepts")
        with network.stalled():
            with pytest.raises(Unavailable) as refused:
                await bench.accepted()
            assert refused.value.code in (ErrorCode.STORAGE_BUSY, ErrorCode.STORAGE_AWAY)
            assert commits.pressure().share >= 1, "intake refuses before it asks the store"
        await until(accepts, "it accepts again")
        await under_test.close()


@pytest.mark.asyncio
async def test_what_changes_all_the_time_is_changed_in_place(alone: SqlUnderTest, emptied_postgres: str) -> None:
    """Counters: no index learns of a new version (pg_stat_user_tables)."""
    asked(emptied_postgres, "SELECT pg_stat_reset()")
    (worker,) = await alone.open_workers(1)
    for n in range(20):
        made = notification(alone.clock.now(), user=f"u{n}")
        await worker.accept([NewNotification(made)])
    await alone.close()

    async def told() -> list[tuple[object, ...]]:
        found = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'counter'"
        rows = asked(emptied_postgres, found)
        return rows if all(int(str(row[0])) >= 15 for row in rows) else []

    rows = await until(told, "the server tells of the updates")
    assert all(int(str(in_place)) >= 0.9 * int(str(all_)) for all_, in_place in rows), rows
