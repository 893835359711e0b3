"""Pages of a feed by type: few rounds, however many entries of other types lie between."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest

from tests.contract.bench import APP, notification
from tests.contract.sql import SqlUnderTest
from tests.empty_store import put_empty
from waypost.domain.ids import UserId
from waypost.ports.feed import FeedQuery, NewEntry
from waypost.ports.work import NewNotification
from waypost.stores.sql import feed_reading
from waypost.stores.sql.connection import connect
from waypost.stores.sql.reading import Look


@pytest.mark.asyncio
async def test_a_small_page_of_one_type_reads_a_hundred_rows_at_a_time(tmp_path: Path) -> None:
    store = SqlUnderTest(f"sqlite:///{put_empty(tmp_path / 'waypost.db')}")
    await store.open()
    (worker,) = await store.open_workers(1)
    now = store.clock.now()
    made = [notification(now) for _ in range(250)]
    made[0] = msgspec.structs.replace(made[0], content=msgspec.structs.replace(made[0].content, type="otp"))
    await worker.accept([NewNotification(each) for each in made])
    await store.feed.add([NewEntry(APP, each.user_id, each.id, 0, n, now) for n, each in enumerate(made, 1)])
    asked: list[str] = []
    with contextlib.closing(connect(tmp_path / "waypost.db")) as connection:
        connection.set_trace_callback(asked.append)
        page = feed_reading.page(connection, FeedQuery(APP, UserId("ann"), types=("otp",), limit=1), Look(now, None))
    assert [each.record.notification.id for each in page.entries] == [made[0].id]
    assert sum("FROM feed_entry" in each for each in asked) == 3
    await store.close()


@pytest.mark.asyncio
async def test_a_page_of_a_tag_reads_the_rows_of_that_tag_alone(tmp_path: Path) -> None:
    store = SqlUnderTest(f"sqlite:///{put_empty(tmp_path / 'waypost.db')}")
    await store.open()
    query = FeedQuery(APP, UserId("ann"), tag="orders")
    asked: list[str] = []
    with contextlib.closing(connect(tmp_path / "waypost.db")) as connection:
        connection.set_trace_callback(asked.append)
        feed_reading.page(connection, query, Look(store.clock.now(), None))
        (said,) = [each for each in asked if "FROM feed_tag" in each]
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {said}").fetchall()]
    assert plan[0].endswith("feed_tag USING PRIMARY KEY (app=? AND user_id=? AND tag=? AND place<?)")
    assert "SCAN" not in " ".join(plan) and "TEMP B-TREE" not in " ".join(plan)
    await store.close()
