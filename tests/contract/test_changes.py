"""Changes of a SQL store: they move on with each commit of any process and rest otherwise, and no timer is missed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.bench import APP, Bench, new_id, notification
from tests.contract.conftest import empty_store
from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import SHARDS, UserId, shard_of
from waypost.domain.time import HOUR_MS, MINUTE_MS, later
from waypost.stores.sql.database import Database
from waypost.stores.sql.postgres.mark import ServerMark
from waypost.stores.sql.sqlite import DataVersion
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture(
    params=["sqlite", *(pytest.param(name, marks=pytest.mark.engines) for name in ("ledger on postgres", "postgres"))]
)
async def stores(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> AsyncIterator[SqlUnderTest]:
    """An empty store of each kind that leases by SQL."""
    async with empty_store(request.param, tmp_path, request, empty_database) as opened:
        assert isinstance(opened, SqlUnderTest)
        yield opened


async def workers(stores: SqlUnderTest, count: int) -> list[Bench]:
    """Workers on one store, each with as many shards."""
    return [Bench(stores, worker) for worker in await stores.open_workers(count)]


def store_of(bench: Bench) -> Store:
    """The store of a worker."""
    under_test = bench.store
    assert isinstance(under_test, SqlUnderTest)
    return under_test._workers[id(bench.worker)]


def user_of(bench: Bench) -> UserId:
    """A user whose shard is this worker's."""
    owned = store_of(bench).shards.owned
    return next(user for n in range(10 * SHARDS) if shard_of(APP, user := UserId(f"u{n}")) in owned)


async def looked(database: Database) -> int:
    """The version after a look."""
    await database.changes.look()
    return database.changes.version


async def test_every_commit_moves_them_on(stores: SqlUnderTest) -> None:
    """Of this process, and of another one."""
    one, other = await workers(stores, 2)
    mine = store_of(one).database
    seen = await looked(mine)
    await other.accepted()
    seen, before = await looked(mine), seen
    assert seen > before
    await one.accepted()
    assert mine.changes.version > seen, "without a look"


@pytest.mark.parametrize("stores", ["sqlite"], indirect=True)
async def test_what_reads_moves_nothing_on(stores: SqlUnderTest) -> None:
    """On a server whatever else is written there does."""
    one, other = await workers(stores, 2)
    mine = store_of(one)
    seen = await looked(mine.database)
    for each in (one, other):
        await each.lease()
        await mine.views.detail(APP, new_id(each.now))
    assert await looked(mine.database) == seen


async def test_what_another_process_schedules_is_released_at_its_time(stores: SqlUnderTest) -> None:
    """The owner of its shard has just seen that nothing is due for long, and nobody told it."""
    one, other = await workers(stores, 2)
    far = await one.accepted(user=user_of(one), scheduled_at=later(one.now, 2 * HOUR_MS))
    for _ in range(2):
        assert await one.worker.promote_due(one.now, 100) == 0
    near = notification(one.now, user=user_of(one), scheduled_at=later(one.now, HOUR_MS))
    await other.accept(near)
    for made in (near, far):
        assert await one.worker.promote_due(one.now, 100) == 0
        one.clock.advance(HOUR_MS)
        assert await one.worker.promote_due(one.now, 100) == 1
        assert [item.notification.id for item in (await one.lease()).items] == [made.id]


async def test_a_clock_that_steps_back_and_on_makes_nothing_late(stores: SqlUnderTest) -> None:
    (one,) = await workers(stores, 1)
    made = await one.accepted(scheduled_at=later(one.now, HOUR_MS))
    for step_ms in (0, -MINUTE_MS, HOUR_MS, MINUTE_MS - 1):
        one.clock.advance(step_ms)
        assert await one.worker.promote_due(one.now, 100) == 0
    one.clock.advance(1)
    assert await one.worker.promote_due(one.now, 100) == 1
    assert [item.notification.id for item in (await one.lease()).items] == [made.id]


async def test_where_nothing_was_written_and_nothing_is_due_no_row_is_asked_for(
    stores: SqlUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = await workers(stores, 1)
    await one.accepted(scheduled_at=later(one.now, HOUR_MS))
    database, asked = store_of(one).database, list[str]()
    read_to_lease = database.read_to_lease

    async def noted(query: Any) -> Any:
        asked.append(query.__qualname__)
        return await read_to_lease(query)

    async def nobody_else() -> DataVersion:
        return DataVersion(0)

    monkeypatch.setattr(database, "read_to_lease", noted)
    monkeypatch.setattr(database.changes, "_read_mark", nobody_else)  # others write on the same server
    for _ in range(3):  # the first ones move the place from which it looks, and say so
        await one.worker.promote_due(one.now, 100)
    assert asked
    asked.clear()
    for _ in range(3):
        await one.worker.promote_due(one.now, 100)
    assert not asked
    await one.accepted()
    await one.worker.promote_due(one.now, 100)
    assert asked


@pytest.mark.parametrize("stores", [pytest.param("postgres", marks=pytest.mark.engines)], indirect=True)
async def test_a_renewal_of_a_member_is_no_news(stores: SqlUnderTest) -> None:
    """Each worker renews its row every other second, and would let no other rest."""
    (one,) = await workers(stores, 1)
    store = store_of(one)
    database, engine = store.database, store.database.engine
    before = await database.read(engine.mark)
    await store.shards.attend()
    await store.shards.leave()  # it renews its row with that
    after = await database.read(engine.mark)
    assert isinstance(before, ServerMark) and isinstance(after, ServerMark)
    ((written,),) = await database.read(lambda connection: connection.execute(_WRITTEN, (store.member(),)).fetchall())
    assert written in after.renewals - before.renewals


_WRITTEN = "SELECT CAST(CAST(xmin AS text) AS bigint) FROM member WHERE id = ?"
