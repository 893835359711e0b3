"""The log goes on while the store behind it cannot be written, or is away: receipts and retries are the log's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest

from tests.contract.bench import RETRY_MS, Bench, again, sent
from tests.contract.log import LogUnderTest
from tests.shows import shows
from waypost.domain.errors import Unavailable
from waypost.domain.status import NotificationStatus
from waypost.stores.sql.connection import connect, database_path

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
    behind, work._work._stored = work._work._stored, Away()
    yield
    work._work._stored = behind


@shows("S1-63", "S1-74")
@pytest.mark.parametrize("fault", [locked, away])
async def test_sends_their_outcomes_and_retries_need_nothing_of_the_store(
    log_store: LogUnderTest, fault: Fault
) -> None:
    """What is written about them is read back once the store is there again (requirements S1-63 and S1-74)."""
    bench = Bench(log_store, (await log_store.open_workers(1))[0])
    with fault(log_store, bench):
        made = await bench.accepted()
        lease, item = await bench.take_one()
        assert await bench.settle_first(lease, item, 1, again(0, bench.now)) == []
        bench.clock.advance(RETRY_MS - 1)
        assert (await bench.take()).items == ()
        bench.clock.advance(1)
        lease, item = await bench.take_one()
        assert await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2)) == []
    detail = await bench.detail(made)
    assert detail.record.status is NotificationStatus.SENT
    assert [(each.attempt, each.retries) for each in detail.receipts] == [(2, 1)]
