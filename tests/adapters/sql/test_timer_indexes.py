"""Indexes of what is open grow with what waits, not with the history (requirements S1-61)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.contract.bench import again, notification, parked, sent, targets
from tests.shows import shows
from waypost.domain.content import Content
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS, later
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio


async def _rows(store: Store, query: str, arguments: tuple[Any, ...] = ()) -> list[Any]:
    return await store.database.read(lambda connection: connection.execute(query, arguments).fetchall())


@shows("S1-61")
async def test_the_index_holds_what_waits_and_nothing_else(tmp_path: Path, open_at: OpenStore) -> None:
    """Of 300 receipts 200 were sent, 60 wait for a retry and 40 for a breaker."""
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    made = [notification(now, user=f"u{n}") for n in range(300)]
    await store.work.accept([NewNotification(each) for each in made])
    lease = await store.work.lease(Lane.NORMAL, 300, later(now, HOUR_MS))
    settlements = [again(0, now)] * 60 + [parked(0, now, later(now, HOUR_MS))] * 40 + [sent(0, now)] * 200
    settled = [
        Settled(item.notification, (change,), targets(1)) for item, change in zip(lease.items, settlements, strict=True)
    ]
    assert await store.work.settle(lease, settled) == []
    counts = [
        await _rows(store, f"SELECT count(*) FROM receipt INDEXED BY {index} WHERE {column} IS NOT NULL")  # noqa: S608 - our own names
        for index, column in (("receipt_due", "due_at"), ("receipt_due_of_app", "due_at"), ("receipt_parked", "parked"))
    ]
    assert counts == [[(100,)], [(100,)], [(40,)]]
    assert await _rows(store, "SELECT count(*) FROM receipt") == [(300,)]


async def test_the_index_of_what_can_be_replaced_holds_what_is_open_and_has_a_key(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """Every third of 30 notifications has a collapse key; all but the last six are sent."""
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    keys = [None, None, "score"] * 10
    made = [msgspec.structs.replace(notification(now), content=Content(title="1:0", collapse_key=key)) for key in keys]
    await store.work.accept([NewNotification(each) for each in made])
    lease = await store.work.lease(Lane.NORMAL, 24, later(now, HOUR_MS))
    over = [Settled(item.notification, (sent(0, now),), targets(1)) for item in lease.items]
    assert await store.work.settle(lease, over) == []
    held = "notification INDEXED BY notification_collapsing WHERE collapses = 1 AND finished_at IS NULL"
    assert await _rows(store, f"SELECT count(*) FROM {held}") == [(2,)]  # noqa: S608 - our own words
