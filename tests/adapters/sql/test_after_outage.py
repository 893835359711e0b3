"""After an outage of the store: what it lost of its last moment is worked off again."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.contract.bench import notification, sent, targets
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql.connection import connect
from waypost.stores.sql.faults import StoreFault
from waypost.stores.sql.state import StoreState

pytestmark = pytest.mark.asyncio


async def test_what_the_store_lost_of_its_last_moment_is_leased_again(tmp_path: Path, open_at: OpenStore) -> None:
    """Outcomes are answered without a sync: a server that fell comes back without the last of them."""
    store = await open_at(tmp_path / "a.db")
    states: asyncio.Queue[StoreState] = asyncio.Queue()
    store.database.commits.on_state_change(states.put_nowait)
    now = WallClock().now()
    made = notification(now)
    await store.work.accept([NewNotification(made)])
    lease = await store.work.lease(Lane.NORMAL, 10, Instant(0))
    assert await store.work.settle(lease, [Settled(made, (sent(0, now),), targets(1))]) == []
    with contextlib.closing(connect(tmp_path / "a.db", busy_timeout_s=10.0)) as disk:
        disk.execute("DELETE FROM receipt")
        disk.execute("UPDATE notification SET status = 'pending', due_at = 0, finished_at = NULL")
    assert (await store.work.lease(Lane.NORMAL, 10, Instant(0))).items == (), "nobody told that anything is lost"
    store.database.commits.report(StoreFault.LOST)
    assert [await states.get(), await states.get()] == [StoreState.AWAY, StoreState.OK]
    (item,) = (await store.work.lease(Lane.NORMAL, 10, Instant(0))).items
    assert item.notification.id == made.id
