"""A withdrawal in the same commit as the outcome it meets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.amending import withdraw
from tests.contract.bench import again, notification, targets
from waypost.domain.amendment import TooLate
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.domain.time import HOUR_MS, MINUTE_MS, later
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql.location import run_dir_of_store
from waypost.stores.sql.write_lock import WriteLock

pytestmark = pytest.mark.asyncio


async def test_a_retry_that_was_written_a_moment_before_is_cancelled_at_once(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """It was still leased when the order was made; it must not read as open until its hour has come."""
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    made = notification(now)
    await store.work.accept([NewNotification(made)])
    lease = await store.work.lease(Lane.NORMAL, 1, later(now, MINUTE_MS))
    somebody_else = WriteLock(run_dir_of_store(store.database.settings))
    with somebody_else.hold(1.0):
        outcome = Settled(made, (again(0, now, wait_ms=HOUR_MS),), targets(1))
        settling = asyncio.create_task(store.work.settle(lease, [outcome]))
        await asyncio.sleep(0)
        withdrawing = asyncio.create_task(withdraw(store.work, made.app, [made.id], "cancelled", now))
        await asyncio.sleep(0)
    somebody_else.close()
    assert await settling == []
    assert await withdrawing == [TooLate(1)]
    await store.dedup.drop_over()  # whatever was queued before this is written
    detail = await store.views.detail(made.app, made.id)
    assert detail is not None
    assert detail.record.status is NotificationStatus.CANCELLED
