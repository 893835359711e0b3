"""Statements of the hot path are compiled once, for the connection that runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.contract.bench import again, notification, sent, targets
from waypost.domain.notification import Lane
from waypost.domain.time import HOUR_MS, MINUTE_MS, later
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql.connection import SqliteConnection, dbapi
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio

_OF_EACH_COMMIT = ("PRAGMA", "BEGIN", "COMMIT")


class _Compiled:
    """The statements that a connection compiled since it was last asked: the library asks for leave for each."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._is_new = False
        self._found: list[str] = []
        connection.set_authorizer(self._on_compiling)
        connection.set_trace_callback(self._on_running)

    def _on_compiling(self, *_what: object) -> int:
        self._is_new = True
        return int(dbapi.SQLITE_OK)

    def _on_running(self, sql: str) -> None:
        if self._is_new and not sql.startswith(_OF_EACH_COMMIT):
            self._found.append(sql)
        self._is_new = False

    def since(self) -> list[str]:
        found, self._found = self._found, []
        return found


async def _life(store: Store, clock: WallClock) -> None:
    """Accept, lease, look up, settle, count, and release some of what is due, then what is due now."""
    now = clock.now()
    made = [notification(now, user=f"u{n}") for n in range(12)]
    await store.work.accept([NewNotification(each) for each in made])
    await store.work.accept([NewNotification(notification(now, scheduled_at=later(now, 5)))])
    for lane in Lane:
        lease = await store.work.lease(lane, 100, later(now, MINUTE_MS))
        named = [(item.notification.app, item.notification.user_id) for item in lease.items]
        await store.devices.for_users(named)
        changes = [again(0, now) if n % 4 == 0 else sent(0, now) for n in range(len(named))]
        over = [Settled(item.notification, (to,), targets(1)) for item, to in zip(lease.items, changes, strict=True)]
        await store.work.settle(lease, over)
        await store.work.depth(lane)
    assert await store.work.promote_due(later(now, HOUR_MS), 3) == 3
    await store.work.promote_due(now, 3)


async def test_what_is_asked_all_the_time_is_compiled_once(tmp_path: Path, open_at: OpenStore) -> None:
    store, clock = await open_at(tmp_path / "waypost.db"), WallClock()
    connections = (store.database.loop_reader, store.database._writer.connection)
    reader, writer = (_Compiled(each) for each in connections if isinstance(each, SqliteConnection))
    for _ in range(2):  # what the first released is leased and settled by the second
        await _life(store, clock)
    assert reader.since()
    assert writer.since()
    await _life(store, clock)
    assert (reader.since(), writer.since()) == ([], [])
