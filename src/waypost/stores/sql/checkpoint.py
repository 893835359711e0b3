"""Copying the write-ahead log into the database, by whoever holds the write lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlite3 import Connection

_PAGE_BYTES = 4096
_CUT_ABOVE = 8
"""The factor of the limit above which the log file itself is cut, at the cost of new allocations afterwards."""
CUT_EVERY_S: Final = 300.0
"""Seconds after which it is cut however short it is: it would else keep what the database has deleted."""
_HURRIED: Final = 4
"""The part of the limit that is copied at a time while somebody is hurried."""
AGAIN_AFTER_S: Final = 10.0
"""Seconds after which that is tried again where somebody read the log."""


class Checkpoint:
    """A checkpoint that runs when more than *limit_bytes* of the log are not in the database, and every five minutes.

    Nothing waits for it.

    Behind somebody who reads for long (a backup, a report) nothing can be copied: it is tried again when as much more
    has been written. https://sqlite.org/c3ref/wal_checkpoint_v2.html
    """

    def __init__(
        self, connection: Connection, limit_bytes: int, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = connection
        self._limit_pages = max(1, limit_bytes // _PAGE_BYTES)
        self._tried_at = 0
        """The length of the log, in pages, when a reader stood in the way."""
        self._monotonic_s = monotonic_s
        self._cut_at_s = monotonic_s() + CUT_EVERY_S

    def run_if_due(self, *, hurried: bool = False) -> None:
        """Check the log (without touching it), copy what can be copied, and cut the file where nobody reads it.

        *hurried*: a part of it at a time, since somebody may want to write soon.
        """
        if self._monotonic_s() >= self._cut_at_s:
            self._cut_in_time()
            return
        _, logged, copied = self._pragma("NOOP")
        if logged < self._tried_at:
            self._tried_at = 0  # the log has begun anew
        if logged - max(copied, self._tried_at) < self._limit_pages // (_HURRIED if hurried else 1):
            return
        _, logged, copied = self._pragma("PASSIVE")
        self._tried_at = 0 if copied >= logged else logged
        if copied >= logged > _CUT_ABOVE * self._limit_pages:
            self._cut()

    def _cut_in_time(self) -> None:
        _, logged, copied = self._pragma("PASSIVE")
        is_cut = logged == 0 or (copied >= logged and self._cut())
        self._cut_at_s = self._monotonic_s() + (CUT_EVERY_S if is_cut else AGAIN_AFTER_S)

    def _cut(self) -> bool:
        """Truncate the log, which everything is copied of, unless somebody reads it at this moment; whether it was."""
        ((patience_ms,),) = self._connection.execute("PRAGMA busy_timeout").fetchall()
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            is_busy, _, _ = self._pragma("TRUNCATE")
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
        return not is_busy

    def _pragma(self, mode: str) -> tuple[int, int, int]:
        row: tuple[int, int, int] = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return row
