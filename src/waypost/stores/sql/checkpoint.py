"""Copying the write-ahead log into the database, by whoever holds the write lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import Connection

_PAGE_BYTES = 4096
_CUT_ABOVE = 8
"""The factor of the limit above which the log file itself is cut, at the cost of new allocations afterwards."""


class Checkpoint:
    """A checkpoint that runs when more than *limit_bytes* of the log are not in the database; nothing waits for it.

    Behind somebody who reads for long (a backup, a report) nothing can be copied: it is tried again when as much more
    has been written. https://sqlite.org/c3ref/wal_checkpoint_v2.html
    """

    def __init__(self, connection: Connection, limit_bytes: int) -> None:
        self._connection = connection
        self._limit_pages = max(1, limit_bytes // _PAGE_BYTES)
        self._tried_at = 0
        """The length of the log, in pages, when a reader stood in the way."""

    def run_if_due(self) -> None:
        """Check the log (without touching it), copy what can be copied, and cut the file where nobody reads it."""
        _, logged, copied = self._pragma("NOOP")
        if logged < self._tried_at:
            self._tried_at = 0  # the log has begun anew
        if logged - max(copied, self._tried_at) < self._limit_pages:
            return
        _, logged, copied = self._pragma("PASSIVE")
        self._tried_at = 0 if copied >= logged else logged
        if copied >= logged > _CUT_ABOVE * self._limit_pages:
            self._cut()

    def _cut(self) -> None:
        """Truncate the log, which everything is copied of, unless somebody reads it at this moment."""
        ((patience_ms,),) = self._connection.execute("PRAGMA busy_timeout").fetchall()
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            self._pragma("TRUNCATE")
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")

    def _pragma(self, mode: str) -> tuple[int, int, int]:
        row: tuple[int, int, int] = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return row
