"""A withdrawal while shards move from one worker to another: what exists is withdrawn, or the caller asks again."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.amending import withdraw
from tests.contract.bench import APP, Bench
from tests.contract.gate import Gate
from tests.contract.sql import SqlUnderTest
from waypost.domain.amendment import NotOpen, Withdrawn
from waypost.domain.errors import Unavailable
from waypost.domain.ids import SHARDS, NotificationId, UserId, shard_of
from waypost.stores.sql.sharing import SqlOwnership
from waypost.stores.sql.work import SqlWork

pytestmark = pytest.mark.asyncio


def _ownership(bench: Bench) -> SqlOwnership:
    assert isinstance(bench.worker, SqlWork)
    return SqlOwnership(bench.worker._shards, bench.worker)


def _user_of(bench: Bench) -> str:
    """A user whose shard is this worker's."""
    assert isinstance(bench.worker, SqlWork)
    owned = bench.worker._shards.owned
    return next(user for user in map("u{}".format, range(1_000)) if shard_of(APP, UserId(user)) in owned)


async def test_a_shard_that_leaves_while_another_owner_is_asked_about_the_rest(ledger_store: SqlUnderTest) -> None:
    """Its next owner leases what it has before the answer comes: nobody is told that this is cancelled, or unknown."""
    leaving, staying = [Bench(ledger_store, worker) for worker in await ledger_store.open_workers(2)]
    mine, theirs = [await leaving.accepted(user=_user_of(bench)) for bench in (leaving, staying)]
    writing = Gate()
    ledger_store.watch_writer(staying.worker, lambda sql: writing.wait() if sql == "COMMIT" else None, lambda: None)
    asked = asyncio.create_task(withdraw(leaving.worker, APP, [mine.id, theirs.id], "erased", leaving.now))
    await writing.reached()
    moving = _ownership(leaving)
    moving.offer(SHARDS)
    await moving.hand_over()
    await _ownership(staying).acquire(SHARDS)
    leased = [item.notification.id for item in (await staying.lease()).items]
    writing.open()
    assert await asked == [Withdrawn(0), Withdrawn(0)]
    assert leased == []


@pytest.mark.engines
async def test_what_a_worker_lost_while_it_decided_is_not_unknown(emptied_postgres: str) -> None:
    """Its membership ended unnoticed between the order and the transaction: the caller is to ask again, and then is
    answered; an id that nobody accepted is unknown all the while."""
    store = SqlUnderTest(emptied_postgres)
    await store.open()
    try:
        (bench,) = [Bench(store, worker) for worker in await store.open_workers(1)]
        made = await bench.accepted()
        with psycopg.connect(emptied_postgres, autocommit=True) as connection:
            connection.execute("UPDATE ownership SET member = NULL")
        with pytest.raises(Unavailable):
            await bench.withdraw(made)
        assert await withdraw(bench.worker, APP, [NotificationId(b"\0" * 16)], "cancelled", bench.now) == [
            NotOpen(None)
        ]
        assert isinstance(bench.worker, SqlWork)
        await bench.worker._shards._renew()  # type: ignore[attr-defined] # what the next second brings
        assert await bench.withdraw(made) == Withdrawn(0)
    finally:
        await store.close()
