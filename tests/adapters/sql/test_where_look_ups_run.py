"""Look-ups for deliveries run on the event loop while they are quick, and in a thread for as long as they are not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore
from waypost.stores.sql import database
from waypost.stores.sql.driver import Connection

pytestmark = pytest.mark.asyncio


async def test_a_slow_disk_holds_up_the_event_loop_once(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was slow in the thread keeps the next ones there for as long again, here for no time at all."""
    store = await open_at(tmp_path / "waypost.db")

    async def is_here(*, quick: bool) -> bool:
        """Look something up that counts as quick, or does not, however busy the machine is; tell where it ran."""
        monkeypatch.setattr(database, "_QUICK_S", float("inf") if quick else 0.0)
        return await store.database.look_up(_thread) == threading.get_ident()

    monkeypatch.setattr(database, "_THREADED_S", float("inf"))
    assert [await is_here(quick=each) for each in (True, False, False, True)] == [True, True, False, False]
    monkeypatch.setattr(database, "_THREADED_S", 0.0)
    assert [await is_here(quick=each) for each in (False, True)] == [False, True]


def _thread(_: Connection) -> int:
    return threading.get_ident()
