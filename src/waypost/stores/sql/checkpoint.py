"""Copying the write-ahead log into the database: nearly all of it beside whoever writes, the rest by who may write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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
_LATER: Final = 4
"""The factor of the limit up to which the log grows, copied ahead, while somebody is hurried."""
_REST: Final = 16
"""The part of the limit that may be left to whoever has the write lock."""
_PASSES: Final = 5
"""Passes over the log to come to its end, while others write on."""
_AGAIN: Final = 3
"""Times that it is begun again where more than the rest was written before somebody looked."""
AGAIN_AFTER_S: Final = 10.0
"""Seconds after which that is tried again where somebody read the log."""


class Ahead:
    """A thread that copies the log while others write, so that the write lock is held for the rest alone.

    A pass that comes to the end of the log also syncs the database, which is what takes long.

    https://sqlite.org/wal.html#concurrency (a checkpoint and a writer can go on side by side)
    """

    def __init__(self, open_connection: Callable[[], Connection]) -> None:
        self._open_connection = open_connection
        self._thread = ThreadPoolExecutor(1, "waypost-checkpoint")
        self._connection: Connection | None = None
        self._begun: Future[None] | None = None

    def begin(self) -> None:
        """Begin to copy."""
        self._begun = self._thread.submit(self._copy)

    def is_at_work(self) -> bool:
        """Tell whether it still copies."""
        return self._begun is not None and not self._begun.done()

    def take(self) -> bool:
        """Tell whether it has copied, or tried to, since this was asked the last time."""
        begun, self._begun = self._begun, None
        return begun is not None

    def _copy(self) -> None:
        """Copy until nothing is left; what stands in the way meets whoever copies the rest, too, and is told there."""
        with contextlib.suppress(Exception):
            self._connection = self._connection or self._open_connection()
            for _ in range(_PASSES):
                is_busy, _, _ = _pragma(self._connection, "PASSIVE")
                _, logged, copied = _pragma(self._connection, "NOOP")
                if is_busy or copied >= logged:
                    break

    def close(self) -> None:
        """Wait for what is begun, and close."""
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()


class Checkpoint:
    """A checkpoint that runs when more than *limit_bytes* of the log are not in the database, and every five minutes.

    Nothing waits for it.

    Behind somebody who reads for long (a backup, a report) nothing can be copied: it is tried again when as much more
    has been written. https://sqlite.org/c3ref/wal_checkpoint_v2.html
    """

    def __init__(
        self,
        connection: Connection,
        limit_bytes: int,
        ahead: Ahead | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._ahead = ahead
        self._limit_pages = max(1, limit_bytes // _PAGE_BYTES)
        self._tried_at = 0
        """The length of the log, in pages, when a reader stood in the way."""
        self._begun_again = 0
        self._monotonic_s = monotonic_s
        self._cut_at_s = monotonic_s() + CUT_EVERY_S

    def run_if_due(self, *, hurried: bool = False, urgent: bool = False) -> None:
        """Check the log (without touching it), copy what can be copied, and cut the file where nobody reads it.

        *hurried*: less at a time, and the rest later, since somebody may want to write soon. *urgent*: that was this
        process: the rest later still, so that others do it.
        """
        if self._ahead is not None and self._ahead.is_at_work():
            return
        if self._monotonic_s() >= self._cut_at_s:
            self._cut_in_time()
        elif self._ahead is not None and self._ahead.take():
            self._go_on(self._ahead, self._limit_pages * (_LATER * (1 + urgent) if hurried else 1))
        elif self._is_long(self._limit_pages // (_HURRIED if hurried else 1)):
            if self._ahead is None:
                self._copy()
            else:
                self._ahead.begin()

    def _is_long(self, limit_pages: int) -> bool:
        _, logged, copied = _pragma(self._connection, "NOOP")
        if logged < self._tried_at:
            self._tried_at = 0  # the log has begun anew
        return logged - max(copied, self._tried_at) >= limit_pages

    def _go_on(self, ahead: Ahead, limit_pages: int) -> None:
        """Copy the rest of a log of that length; the next write begins a shorter one anew, where all is copied."""
        _, logged, copied = _pragma(self._connection, "NOOP")
        if logged < limit_pages:
            self._tried_at = logged
        elif logged - copied > self._limit_pages // _REST and self._begun_again < _AGAIN:
            self._begun_again += 1
            ahead.begin()
        else:
            self._begun_again = 0
            self._copy()

    def _copy(self) -> None:
        _, logged, copied = _pragma(self._connection, "PASSIVE")
        self._tried_at = 0 if copied >= logged else logged
        if copied >= logged > _CUT_ABOVE * self._limit_pages:
            self._cut()

    def _cut_in_time(self) -> None:
        _, logged, copied = _pragma(self._connection, "PASSIVE")
        is_cut = logged == 0 or (copied >= logged and self._cut())
        self._cut_at_s = self._monotonic_s() + (CUT_EVERY_S if is_cut else AGAIN_AFTER_S)

    def _cut(self) -> bool:
        """Truncate the log, which everything is copied of, unless somebody reads it at this moment; whether it was."""
        ((patience_ms,),) = self._connection.execute("PRAGMA busy_timeout").fetchall()
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            is_busy, _, _ = _pragma(self._connection, "TRUNCATE")
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
        return not is_busy


def _pragma(connection: Connection, mode: str) -> tuple[int, int, int]:
    """Run a checkpoint of that mode; return whether it was busy, and the pages logged and copied."""
    row: tuple[int, int, int] = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    return row
