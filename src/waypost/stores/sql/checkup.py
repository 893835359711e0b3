"""A closer look at a store than ``look``, for ``waypost doctor``: its schema, soundness, sizes and clock."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.connection import SqliteConnection, connect_to_look, dbapi
from waypost.stores.sql.migrations import NOTED_IN

PATIENCE_S: Final = 10.0
"""Seconds for the check of a file; a large one is not read to its end."""
_SOUND: Final = [("ok",)]
_FAULTS_SHOWN: Final = 3
_STEPS: Final = 10_000
"""Instructions of SQLite between two looks at the time."""


class Checkup(Struct, frozen=True, kw_only=True):
    """The findings on a store that can be opened."""

    revision: str | None
    """The revision of its schema; None of a database without tables."""
    size_bytes: int
    log_bytes: int
    """Bytes of its write-ahead log: of the file, or what replication slots keep of PostgreSQL's."""
    damage: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """The tables that are not there; the next start makes them."""
    is_checked: bool = True
    """Whether all of it was checked."""
    clock_ahead_s: float | None = None
    """Seconds that the server's clock is ahead of this machine's; None where there is no server."""
    oldest_transaction_s: float = 0.0
    """Seconds that somebody's oldest transaction on the server has been open."""


def check_up_file(path: Path, tables: Sequence[AddedTable]) -> Checkup | None:
    """Look at a SQLite file and change nothing; None where there is none yet."""
    if not path.exists():
        return None
    log = path.with_name(path.name + "-wal")
    log_bytes = log.stat().st_size if log.exists() else 0
    # what a log holds whose index is gone cannot be read without making one: the file alone may look damaged
    is_readable = not log_bytes or path.with_name(path.name + "-shm").exists()
    with contextlib.closing(connect_to_look(path)) as connection:
        damage = _damage(connection) if is_readable else None
        return Checkup(
            revision=_revision(connection),
            size_bytes=path.stat().st_size,
            log_bytes=log_bytes,
            damage=damage or (),
            missing=tuple(table.name for table in tables if not _has(connection, table.name)),
            is_checked=damage is not None,
        )


def _damage(connection: SqliteConnection) -> tuple[str, ...] | None:
    """Run SQLite's own quick check; None where it takes too long."""
    until_s = time.monotonic() + PATIENCE_S
    connection.set_progress_handler(lambda: time.monotonic() > until_s, _STEPS)
    try:
        found = connection.execute(f"PRAGMA quick_check({_FAULTS_SHOWN})").fetchall()
    except dbapi.OperationalError:
        if time.monotonic() > until_s:
            return None
        raise
    finally:
        connection.set_progress_handler(None, 0)
    return () if found == _SOUND else tuple(str(why) for (why,) in found)


def _has(connection: SqliteConnection, table: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall())


def _revision(connection: SqliteConnection) -> str | None:
    named = _has(connection, NOTED_IN)
    rows = connection.execute(f"SELECT version_num FROM {NOTED_IN}").fetchall() if named else []  # noqa: S608 - ours
    return str(rows[0][0]) if rows else None
