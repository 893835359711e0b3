"""A disk that fails in the middle of a lease: what was found before is leasable again, in its order."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.contract.bench import APP, OTHER_APP, again, notification, targets
from waypost.domain.errors import Unavailable
from waypost.domain.ids import SHARDS, NotificationId, shard_of
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS, MINUTE_MS, later
from waypost.ports.work import Lease, NewNotification, Settled
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio


class FailingReads:
    """A connection of which the *nth* statement with *words* in it meets a disk that cannot be read."""

    def __init__(self, connection: Any, words: str, nth: int) -> None:
        self._connection = connection
        self._words = words
        self._left = nth

    def execute(self, sql: str, *arguments: Any) -> Any:
        """Run it, or fail once."""
        self._left -= self._words in sql
        if self._left == 0 and self._words in sql:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return self._connection.execute(sql, *arguments)


async def _lease(store: Store, n: int = 100) -> Lease:
    return await store.work.lease(Lane.NORMAL, n, later(WallClock().now(), MINUTE_MS))


async def _lease_on_a_failing_disk(store: Store, nth: int, n: int = 100) -> None:
    connection = store.database.loop_reader
    store.database.loop_reader = FailingReads(connection, "notification_fresh CROSS JOIN", nth)  # type: ignore[assignment]  # what it stands for
    with pytest.raises(Unavailable):
        await _lease(store, n)
    store.database.loop_reader = connection


async def test_what_was_leased_of_one_app_before_the_read_of_the_next_failed_is_leased_again(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """The caller never heard of it, so nobody would ever settle it."""
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    made = [notification(now, app=app) for app in (APP, APP, OTHER_APP)]
    await store.work.accept([NewNotification(each) for each in made])
    await _lease_on_a_failing_disk(store, nth=2)
    assert store.work.busy_units() == set()
    found = [item.notification for item in (await _lease(store)).items]
    assert [each.id for each in found if each.app == APP] == [each.id for each in made[:2]]
    assert [each.id for each in found if each.app == OTHER_APP] == [made[2].id]


async def test_a_retry_that_was_taken_before_the_read_failed_is_leased_again(
    tmp_path: Path, open_at: OpenStore
) -> None:
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    made = notification(now)
    await store.work.accept([NewNotification(made)])
    lease = await _lease(store)
    await store.work.settle(lease, [Settled(made, (again(0, now),), targets(1))])
    await store.work.promote_due(later(now, HOUR_MS), 10)
    await store.work.accept([NewNotification(notification(now))])
    await _lease_on_a_failing_disk(store, nth=1)
    assert len((await _lease(store)).items) == 2


async def test_what_was_read_before_the_next_page_failed_is_leased(tmp_path: Path, open_at: OpenStore) -> None:
    """After a change of shards the tail begins anew, and passes over what is leased: then it takes two pages."""
    store = await open_at(tmp_path / "waypost.db")
    made = [notification(WallClock().now()) for _ in range(3)]
    await store.work.accept([NewNotification(each) for each in made])
    assert [item.notification.id for item in (await _lease(store, 1)).items] == [made[0].id]
    elsewhere = next(shard for shard in range(SHARDS) if shard != shard_of(APP, made[0].user_id))
    store.work.stop_leasing([elsewhere])
    await _lease_on_a_failing_disk(store, nth=2, n=2)
    found = [item.notification.id for item in (await _lease(store)).items]
    assert found == [each.id for each in made[1:]]


async def test_what_is_given_back_keeps_its_order(tmp_path: Path, open_at: OpenStore) -> None:
    """First attempts of one user start in the order of their acceptance, also after a store that was away."""
    store = await open_at(tmp_path / "waypost.db")
    made = [notification(WallClock().now()) for _ in range(3)]
    await store.work.accept([NewNotification(each) for each in made])
    lease = await _lease(store)
    await store.work.settle(lease, [Settled(item.notification, given_back=True) for item in lease.items])
    found: list[NotificationId] = [item.notification.id for item in (await _lease(store)).items]
    assert found == [each.id for each in made]
