"""Look-ups for deliveries run on the event loop while they are quick, and in a thread for as long as they are not."""

from __future__ import annotations

import threading
import time
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
    here = threading.get_ident()
    monkeypatch.setattr(database, "_THREADED_S", float("inf"))
    asked = (_quickly, _slowly, _slowly, _quickly)
    assert [await store.database.look_up(each) == here for each in asked] == [True, True, False, False]
    monkeypatch.setattr(database, "_THREADED_S", 0.0)
    assert [await store.database.look_up(each) == here for each in (_slowly, _quickly)] == [False, True]


def _quickly(_: Connection) -> int:
    return threading.get_ident()


def _slowly(_: Connection) -> int:
    time.sleep(2 * database._QUICK_S)  # a disk that takes its time
    return threading.get_ident()
