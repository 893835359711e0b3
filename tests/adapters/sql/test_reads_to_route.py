"""Where what a delivery needs is read: on the event loop while that is quick, otherwise in a thread."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore
from waypost.stores.sql import database
from waypost.stores.sql.driver import Connection

pytestmark = pytest.mark.asyncio


async def test_a_read_that_was_slow_sends_the_next_ones_to_a_thread_for_a_while(
    tmp_path: Path, open_at: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is slow does not stop the event loop more than once in that while."""
    store = await open_at(tmp_path / "waypost.db")
    monkeypatch.setattr(database, "_SLOW_FOR_S", float("inf"))
    assert await store.database.read_to_route(_thread) == threading.get_ident()
    assert await store.database.read_to_route(_slowly) == threading.get_ident()
    assert await store.database.read_to_route(_thread) != threading.get_ident()


def _thread(_: Connection) -> int:
    return threading.get_ident()


def _slowly(_: Connection) -> int:
    time.sleep(2 * database._QUICK_S)  # a disk that takes its time
    return threading.get_ident()
