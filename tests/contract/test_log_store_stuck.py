"""The log goes on while the store behind it cannot be written, is slow or away: receipts and retries are the log's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest

from scripts.services.postgres import Postgres
from scripts.services.service import HOST
from tests.contract.bench import RETRY_MS, Bench, again, sent
from tests.contract.log import LogUnderTest, opened_log
from tests.contract.log_clients import LogTopics
from tests.journeys.harness import until
from tests.proxy import before
from tests.shows import shows
from waypost.domain.errors import Unavailable
from waypost.domain.notification import Lane, Notification
from waypost.domain.status import NotificationStatus
from waypost.stores.kafka.log import Log
from waypost.stores.kafka.stored_work import StoredWork
from waypost.stores.sql.connection import connect, database_path
from waypost.stores.sql.postgres.connection import _Bounded
from waypost.stores.sql.state import StoreState

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]
Fault = Callable[[LogUnderTest, Bench], AbstractContextManager[None]]


@contextmanager
def locked(store: LogUnderTest, bench: Bench) -> Any:
    """Somebody else writes, and does not come to an end."""
    with closing(connect(database_path(store.url))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield
        writer.execute("ROLLBACK")


@contextmanager
def away(store: LogUnderTest, bench: Bench) -> Any:
    """The store's own queue answers nothing."""

    class Away:
        """No call of it comes back with anything."""

        def __getattr__(self, name: str) -> Any:
            async def refuse(*arguments: Any) -> Any:
                raise Unavailable("the store is away")

            return refuse

    work: Any = bench.worker
    log = work._work
    behind, log._stored, log._beside = (log._stored, log._beside), Away(), StoredWork(Away())
    yield
    log._stored, log._beside = behind


@shows("S1-63", "S1-74")
@pytest.mark.parametrize("fault", [locked, away])
async def test_sends_their_outcomes_and_retries_need_nothing_of_the_store(
    log_store: LogUnderTest, fault: Fault
) -> None:
    """What is written about them is read back once the store is there again (requirements S1-63 and S1-74)."""
    bench = Bench(log_store, (await log_store.open_workers(1))[0])
    with fault(log_store, bench):
        made = await sent_at_the_second_attempt(bench)
    await check_recorded(bench, made)


@shows("S1-63")
async def test_sends_their_outcomes_and_retries_do_not_wait_for_a_postgresql_that_is_slow(
    postgres: Postgres, emptied_postgres: str, log_topics: LogTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As slow as can be: until all is sent and settled no byte of it comes, and nobody takes it for away."""
    monkeypatch.setattr(_Bounded, "answer_timeout_s", 600.0)
    async with before(HOST, postgres.ports[0]) as network:
        url = emptied_postgres.replace(f":{postgres.ports[0]}/", f":{network.port}/")
        async with opened_log(url, log_topics) as store:
            bench = Bench(store, (await store.open_workers(1))[0])
            database = store._workers[id(bench.worker)].database

            async def is_well() -> bool:
                return database.state is StoreState.OK

            await until(is_well, "it is connected to the server")
            assert (await bench.take()).items == (), "each of its connections is there: none has to be made meanwhile"
            with network.stalled():
                await sent_while_the_store_is_asked(bench, store._logs[id(bench.worker)])
                made = await sent_at_the_second_attempt(bench)
                assert await is_well()
            await check_recorded(bench, made)


async def sent_while_the_store_is_asked(bench: Bench, log: Log) -> None:
    """Nothing is there yet when a lane looks for work; what comes then does not wait for the store's answer."""

    async def is_asked() -> bool:
        return log.work._beside.is_asked(Lane.NORMAL)

    leasing = asyncio.create_task(bench.lease())
    await until(is_asked, "the store is asked")
    await bench.accepted(user="bob")
    lease = await leasing
    (item,) = lease.items
    assert await bench.settle_first(lease, item, 1, sent(0, bench.now)) == []


async def sent_at_the_second_attempt(bench: Bench) -> Notification:
    """Accept one, try it, wait for its retry and send it."""
    made = await bench.accepted()
    lease, item = await bench.take_one()
    assert await bench.settle_first(lease, item, 1, again(0, bench.now)) == []
    bench.clock.advance(RETRY_MS - 1)
    assert not await bench.worker.promote_due(bench.now, 1000), "not before its time"
    bench.clock.advance(1)
    lease, item = await bench.take_one()
    assert await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2)) == []
    return made


async def check_recorded(bench: Bench, made: Notification) -> None:
    """Both attempts are in the store."""
    detail = await bench.detail(made)
    assert detail.record.status is NotificationStatus.SENT
    assert [(each.attempt, each.retries) for each in detail.receipts] == [(2, 1)]
