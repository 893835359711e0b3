"""The slices of the history on SQLite: where each row is, when one is opened, and when it goes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.contract.bench import APP, notification
from waypost.domain.ids import NotificationId, UserId, first_id_at, next_ids
from waypost.domain.time import DAY_MS, later
from waypost.ports.views import HistoryQuery
from waypost.ports.work import NewNotification
from waypost.stores.sql import history
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio

NOW = WallClock().now()
ANN = UserId("ann")
_ROWS = "SELECT id, slice FROM notification ORDER BY seq"
_SLICES = "SELECT first, number, after_seq FROM history_slice ORDER BY first"


async def accepted(store: Store, *days: float) -> list[NotificationId]:
    """The ids of one commit, each made so many days from now."""
    ids = [next_ids(later(NOW, int(each * DAY_MS)), 1, os.urandom(10), 0)[0][0] for each in days]
    made = [msgspec.structs.replace(notification(NOW, user=ANN), id=each) for each in ids]
    await store.work.accept([NewNotification(each) for each in made])
    return ids


async def rows(store: Store, sql: str) -> list[tuple[bytes, int]]:
    """Return what the store answers."""
    return await store.database.read(lambda connection: connection.execute(sql).fetchall())


async def misplaced(store: Store) -> list[bytes]:
    """Return the rows that are in a slice that is not their ids'."""
    slices = [(row[0], row[1]) for row in await rows(store, _SLICES)]
    belongs = {each: [number for first, number in slices if first <= each][-1] for each, _ in await rows(store, _ROWS)}
    return [each for each, number in await rows(store, _ROWS) if belongs[each] != number]


async def test_a_slice_is_opened_when_the_newest_has_enough_rows(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SHORTEST", 4)
    store = await open_at(tmp_path / "a.db")
    for n in range(12):
        await accepted(store, n - 20)
    assert [number for _, number in await rows(store, _ROWS)] == [0] * 3 + [1] * 4 + [2] * 4 + [3]
    assert await misplaced(store) == []


async def test_slices_grow_with_the_store(tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of all rows at most a slice: as many again take fewer slices than the first did."""
    monkeypatch.setattr(history, "SHORTEST", 2)
    monkeypatch.setattr(history, "PARTS", 3)
    store = await open_at(tmp_path / "a.db")
    for n in range(30):
        await accepted(store, n - 90)
    first = len(await rows(store, _SLICES))
    for n in range(30, 60):
        await accepted(store, n - 90)
    assert first < len(await rows(store, _SLICES)) < first + 4
    assert await misplaced(store) == []


async def test_what_comes_late_is_in_the_slice_of_its_id(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a clock was ahead: what follows is before that, and in the order of ids all the same."""
    monkeypatch.setattr(history, "SHORTEST", 2)
    store = await open_at(tmp_path / "a.db")
    commits = (-9, -8.9), (-8,), (-7, -6.9), (400, -8.5), (-6, -30), (-5,), (-8.2, -4), (-3, -7.5)
    made = [each for days in commits for each in await accepted(store, *days)]
    assert await misplaced(store) == []
    found = await store.views.history(HistoryQuery(APP, user_id=ANN, limit=100))
    assert [each.notification.id for each in found] == sorted(made, reverse=True)


async def test_an_empty_slice_goes_and_takes_no_place_with_it(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a day; what comes late into its time is found among what is left."""
    monkeypatch.setattr(history, "SHORTEST", 2)
    store = await open_at(tmp_path / "a.db")
    made = [each for days in range(-40, 0, 4) for each in await accepted(store, days)]
    before = later(NOW, -10 * DAY_MS)
    gone = [each for each in made if each < first_id_at(before)]
    connection = store.database._writer.connection
    for each in gone:
        connection.execute("DELETE FROM notification WHERE id = ?", (each,))
    were = await rows(store, _SLICES)
    await store.retention.drop_whole(before)
    left = await rows(store, _SLICES)
    assert (left[0], left[-1]) == (were[0], were[-1])
    assert len(were) - len(left) == len(gone) // 2 - 1
    late = await accepted(store, -25)
    await accepted(store, 0)
    assert await misplaced(store) == []
    found = await store.views.history(HistoryQuery(APP, user_id=ANN, limit=100))
    assert [each.notification.id for each in found][-1:] == late
