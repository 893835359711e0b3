"""What is fresh, and what is open: found by the next look if it came in the middle of one, counted until it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.amending import withdraw
from tests.contract.bench import APP, OTHER_APP, notification, sent, targets
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification, Settled
from waypost.stores.sql import lease
from waypost.stores.sql.connection import SqliteConnection, connect
from waypost.stores.sql.lease import FreshTail
from waypost.stores.sql.units import WHOLE

pytestmark = pytest.mark.asyncio


class _Rows(list[Any]):
    """What a statement returned."""

    def fetchone(self) -> Any:
        """See Cursor."""
        return self[0] if self else None

    def fetchall(self) -> list[Any]:
        """See Cursor."""
        return self


class _Interrupted:
    """A connection; when it has read the rows of one statement for the *nth* time, something happens."""

    def __init__(self, connection: SqliteConnection, statement: str, nth: int, happens: Callable[[], object]) -> None:
        self._connection = connection
        self._statement = statement
        self._left = nth
        self._happens = happens

    def execute(self, sql: str, bound: Sequence[Any] = ()) -> _Rows:
        """See Connection."""
        rows = _Rows(self._connection.execute(sql, bound).fetchall())
        if self._statement in sql:
            self._left -= 1
            if self._left == 0:
                self._happens()
        return rows


def _found(tail: FreshTail, connection: Any) -> list[tuple[AppId, NotificationId]]:
    """What the tail finds by one look."""
    apps = sorted(tail.apps(connection, Lane.NORMAL))
    found = [each for app in apps for each, _ in tail.read(connection, Lane.NORMAL, app, 10, lambda _: False)]
    return [(item.notification.app, item.notification.id) for item in found]


@pytest.mark.parametrize(
    ("statement", "nth", "app"),
    [(" CROSS JOIN content", 1, APP), (lease._APPS, 1, OTHER_APP)],
    ids=["of an app", "another app"],
)
async def test_what_is_accepted_between_two_reads_is_found_by_the_next_look(
    tmp_path: Path, open_at: OpenStore, statement: str, nth: int, app: AppId
) -> None:
    """How far was read is what was the end before the rows were read."""
    store = await open_at(tmp_path / "a.db")
    first, second = notification(WallClock().now()), notification(WallClock().now(), app=app)
    await store.work.accept([NewNotification(first)])
    loop = asyncio.get_running_loop()

    def accept() -> None:
        asyncio.run_coroutine_threadsafe(store.work.accept([NewNotification(second)]), loop).result()

    tail = FreshTail()
    tail.start_over(WHOLE)
    with contextlib.closing(connect(tmp_path / "a.db", read_only=True)) as connection:
        interrupted = _Interrupted(connection, statement, nth, accept)
        found = await asyncio.to_thread(_found, tail, interrupted)
        assert found == [(APP, first.id)]
        assert await asyncio.to_thread(_found, tail, interrupted) == [(app, second.id)]


async def test_what_has_ended_is_open_no_more(tmp_path: Path, open_at: OpenStore) -> None:
    """The counters say how much is open where there is too much to count: in whatever way it ended."""
    store = await open_at(tmp_path / "a.db")
    now = WallClock().now()
    made = [notification(now, user=user) for user in ("ann", "bob", "eve")]
    await store.work.accept([NewNotification(each) for each in made])

    async def are_open() -> int:
        return await store.database.read(lambda connection: lease.open_in(connection, Lane.NORMAL))

    assert await are_open() == 3
    await withdraw(store.work, APP, [made[2].id], "cancelled", now)
    assert await are_open() == 2
    leased = await store.work.lease(Lane.NORMAL, 10, Instant(0))
    await store.work.settle(leased, [Settled(made[0], (sent(0, now),), targets(1)), Settled(made[1], (), targets(1))])
    assert await are_open() == 1
    await store.work.settle(leased, [Settled(made[1], (sent(0, now),))])
    assert await are_open() == 0
