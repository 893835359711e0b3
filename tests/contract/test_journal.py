"""Journal: one row a transaction, tailed by each reader for itself."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest

from tests.contract.bench import Bench, notification, sent
from tests.contract.clock import StoppedClock
from tests.contract.sql import settings_of
from tests.contract.stores import StoreUnderTest
from tests.journeys.harness import until
from waypost.domain.ids import DeviceId
from waypost.ports.journal import Journal, JournalRow
from waypost.ports.work import NewNotification
from waypost.stores.sql.postgres.connection import WRITING
from waypost.stores.sql.store import open_store
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio


async def written(journal: Journal, count: int) -> Sequence[JournalRow]:
    """All rows, once there are so many: PostgreSQL shows none while an older transaction of any database is open."""

    async def there() -> Sequence[JournalRow] | None:
        rows = await journal.read(0, 10)
        return rows if len(rows) == count else None

    rows: Sequence[JournalRow] = await until(there, f"{count} rows")
    return rows


async def test_a_new_store_has_an_empty_journal(store: StoreUnderTest) -> None:
    assert await store.journal.read(0, 10) == []


async def test_rows_come_in_order_page_by_page(bench: Bench) -> None:
    made = [await bench.accepted() for _ in range(5)]
    await written(bench.store.journal, 5)
    journal = bench.store.journal
    position, found = 0, []
    while page := await journal.read(position, 2):
        assert len(page) <= 2
        assert page[0].position > position
        position = page[-1].position
        found += [move.notification_id for row in page for move in row.moves]
    assert found == [one.id for one in made]


async def test_one_transaction_is_one_row(bench: Bench) -> None:
    await bench.accept(*(notification(bench.now) for _ in range(3)))
    (row,) = await written(bench.store.journal, 1)
    assert len(row.moves) == 3


async def test_rows_that_name_whom_a_reader_seeks_come_with_their_moves(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    (device,) = {receipt.device_id for receipt in await bench.receipts(made)}
    accepted, settled = await written(bench.store.journal, 2)
    read = bench.store.journal.read
    assert settled in await read(0, 10, [DeviceId("nobody's"), device])
    assert [row.position for row in await read(0, 10, [])] == [accepted.position, settled.position]


async def test_each_reader_stands_where_it_said(store: StoreUnderTest) -> None:
    assert await store.journal.position("webhooks") == 0
    await store.journal.advance("webhooks", 7)
    await store.journal.advance("janitor", 3)
    await store.journal.advance("webhooks", 9)
    await store.journal.advance("webhooks", 8)  # a process that stood still says so late
    assert await store.journal.position("webhooks") == 9
    assert await store.journal.position("janitor") == 3


async def test_only_rows_before_a_position_are_dropped_a_few_at_a_time(bench: Bench) -> None:
    for _ in range(5):
        await bench.accepted()
    journal = bench.store.journal
    rows = await written(bench.store.journal, 5)
    assert await journal.drop_before(rows[3].position, 2) == 2
    assert await written(bench.store.journal, 3) == rows[2:]
    assert await journal.drop_before(rows[3].position, 2) == 1
    assert await journal.drop_before(rows[3].position, 2) == 0
    assert await written(bench.store.journal, 2) == rows[3:]


async def test_positions_are_never_used_again(bench: Bench) -> None:
    await bench.accepted()
    last = (await written(bench.store.journal, 1))[-1].position
    await bench.store.journal.drop_before(last + 1, 10)
    await bench.accepted()
    assert (await written(bench.store.journal, 1))[-1].position > last


@pytest.mark.engines
async def test_what_an_open_transaction_may_still_come_before_is_not_read(emptied_postgres: str) -> None:
    """On PostgreSQL a position is given out when a transaction begins to write, and is there when it commits."""
    clock = StoppedClock()
    store = await open_store(settings_of(emptied_postgres), clock=clock, peers=None, telemetry=Silent())
    try:
        with psycopg.connect(emptied_postgres) as earlier:
            earlier.execute(f"SELECT pg_advisory_xact_lock_shared({WRITING})".encode())  # as whoever writes for Waypost
            row = earlier.execute("INSERT INTO journal (at, moves) VALUES (0, %s) RETURNING position", (b"\x90",))
            (position,) = row.fetchall()[0]
            made = notification(clock.now())
            await store.work.accept([NewNotification(made)])
            assert await store.journal.read(0, 10) == [], "a reader would pass over the earlier row for ever"
        first, second = await written(store.journal, 2)
        assert (first.position, [move.notification_id for move in second.moves]) == (position, [made.id])
    finally:
        await store.close()
