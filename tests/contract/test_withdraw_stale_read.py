"""A withdrawal that is committed while what may be leased is being read, on PostgreSQL: the read is a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

from tests.amending import withdraw
from tests.contract.bench import OTHER_APP, Bench
from tests.contract.gate import Gate
from tests.contract.sql import SqlUnderTest
from waypost.domain.amendment import NotOpen, Withdrawn
from waypost.domain.time import MINUTE_MS, later
from waypost.stores.sql.work import SqlWork

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]


@pytest_asyncio.fixture
async def on_postgres(emptied_postgres: str) -> AsyncIterator[SqlUnderTest]:
    """An empty store."""
    opened = SqlUnderTest(emptied_postgres)
    await opened.open()
    yield opened
    await opened.close()


async def _lease(bench: Bench) -> object:
    return (await bench.lease()).items


async def _release_and_lease(bench: Bench) -> object:
    await bench.worker.promote_due(bench.now, 100)
    return (await bench.lease()).items


@pytest.mark.parametrize(("wait_ms", "read"), [(0, _lease), (MINUTE_MS, _release_and_lease)], ids=["fresh", "due"])
async def test_what_was_withdrawn_while_it_was_read_is_not_leased(
    on_postgres: SqlUnderTest, wait_ms: int, read: Callable[[Bench], Awaitable[object]]
) -> None:
    """The read begins before the withdrawal's commit, and goes on after it was answered."""
    (worker,) = await on_postgres.open_workers(1)
    bench, writing, reading = Bench(on_postgres, worker), Gate(), Gate()
    made = await bench.accepted(scheduled_at=later(bench.now, wait_ms) if wait_ms else None)
    on_postgres.clock.advance(wait_ms)
    assert isinstance(worker, SqlWork)
    is_taken = worker._lease_table.is_taken

    def is_taken_later(*asked: Any) -> bool:
        reading.wait()
        return is_taken(*asked)

    setattr(worker._lease_table, is_taken.__name__, is_taken_later)
    on_postgres.watch_writer(worker, lambda sql: writing.wait() if sql == "COMMIT" else None, lambda: None)
    withdrawing = asyncio.create_task(bench.withdraw(made))
    await writing.reached()
    leasing = asyncio.ensure_future(read(bench))
    await reading.reached()
    writing.open()
    assert await withdrawing == Withdrawn(0)
    reading.open()
    assert await leasing == ()


async def test_a_withdrawal_by_another_app_lets_the_notification_be_leased(on_postgres: SqlUnderTest) -> None:
    """The order names an id of somebody else: it keeps nothing from being leased, nor does the tail pass over it."""
    (worker,) = await on_postgres.open_workers(1)
    bench, reading = Bench(on_postgres, worker), Gate()
    made = await bench.accepted()
    other = await bench.accepted(app=OTHER_APP)
    on_postgres.watch_writer(worker, lambda sql: reading.wait() if sql == "COMMIT" else None, lambda: None)
    ids = [made.id, other.id]
    withdrawing = asyncio.create_task(withdraw(worker, OTHER_APP, ids, "cancelled", bench.now))
    await reading.reached()
    leased = await bench.lease()
    reading.open()
    assert await withdrawing == [NotOpen(None), Withdrawn(0)]
    assert [item.notification.id for item in leased.items] == [made.id]
