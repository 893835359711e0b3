"""Copying the write-ahead log into the database, by whoever holds the write lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection

_PAGE_BYTES = 4096
_CUT_ABOVE = 8
"""Times the limit: above this the log file itself is cut back, which costs new allocations afterwards."""


class Checkpoint:
    """Runs a checkpoint when more than *limit_bytes* of the log are not yet in the database."""

    def __init__(self, connection: Connection, limit_bytes: int) -> None:
        self._connection = connection
        self._limit_pages = max(1, limit_bytes // _PAGE_BYTES)

    def run_if_due(self) -> None:
        """Look at the log (without touching it) and copy what is due; readers never block it, they make it partial."""
        _, logged, copied = self._pragma("NOOP")
        if logged - copied < self._limit_pages:
            return
        self._pragma("TRUNCATE" if logged > _CUT_ABOVE * self._limit_pages else "PASSIVE")

    def finish(self) -> None:
        """Copy everything and cut the log, before the store is closed."""
        self._pragma("TRUNCATE")

    def _pragma(self, mode: str) -> tuple[int, int, int]:
        row: tuple[int, int, int] = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return row
