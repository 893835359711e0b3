"""What the connections of a process keep of the file in its memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore
from tests.contract.bench import notification
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification
from waypost.stores.sql.connection import SqliteConnection
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.sqlite import SqliteWriter

_MIB = 1 << 20
_BOUND_MIB = 24
"""A process is to have 150 MiB, of which its code and what it has imported take 97."""


@pytest.mark.asyncio
async def test_all_connections_of_a_process_keep_a_sixth_of_its_memory_at_most(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """Each keeps pages of its own: what writes, what reads on the event loop, and the threads that read."""
    store = await open_at(tmp_path / "a.db")
    await store.work.accept([NewNotification(notification(Instant(1_700_000_000_000)))])
    writer, on_loop = store.database._writer, store.database.loop_reader
    assert isinstance(writer, SqliteWriter)
    assert isinstance(on_loop, SqliteConnection)
    threads = 1 + store.database._readers._size
    kept = _kept_mib(writer.connection) + _kept_mib(on_loop) + threads * await _kept_by_a_thread(store.database)
    assert 0 < kept <= _BOUND_MIB


async def _kept_by_a_thread(database: Database) -> float:
    return max(await database.read(_kept_mib), await database.read_to_route(_kept_mib))


def _kept_mib(connection: Connection) -> float:
    """The most that a connection keeps: SQLite says it in pages, or below 0 in KiB."""
    ((said,),) = connection.execute("PRAGMA cache_size").fetchall()
    ((page_bytes,),) = connection.execute("PRAGMA page_size").fetchall()
    return float(-said / 1024 if said < 0 else said * page_bytes / _MIB)
