"""The size of the store by day, on both engines."""

from __future__ import annotations

from random import randbytes

import pytest

from tests.contract.archiving import day
from tests.contract.bench import Bench, notification
from tests.contract.sql import SqlUnderTest
from tests.engines import run_sql
from waypost.stores.sql.store_sizes import KEPT_DAYS

pytestmark = pytest.mark.asyncio


async def test_a_store_that_is_written_grows_and_its_sizes_are_kept_for_a_month(ledger_store: SqlUnderTest) -> None:
    """Of a server nobody knows here how much room it has."""
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    sizes = ledger_store.ground_of(bench.worker).store.store_sizes
    is_file = ledger_store.url.startswith("sqlite")
    if not is_file:
        run_sql(ledger_store.url, "VACUUM FULL content")  # tests before may have left room that is filled first
    for _ in range(2):
        await sizes.note(bench.now)
    assert (await sizes.forecast(10**12)).bytes_a_day is None
    day(bench, 1)
    await bench.accept(*[notification(bench.now, body=randbytes(2_000).hex()) for _ in range(500)])
    await sizes.note(bench.now)
    told = await sizes.forecast(10**12)
    assert told.size > 2_000_000
    assert told.bytes_a_day is not None
    assert 0 < told.bytes_a_day < told.size
    assert told.days_left == (round(10**12 / told.bytes_a_day, 1) if is_file else None)
    day(bench, KEPT_DAYS + 1)
    await sizes.note(bench.now)
    assert (await sizes.forecast(None)).bytes_a_day is None, "it is the only day"
