"""The pace of commits, and how long the next operation will therefore wait."""

from __future__ import annotations

from typing import Final

_NEWEST_COUNTS: Final = 0.3
"""The weight of the newest commit in the measured pace."""


class CommitPace:
    """The rows that are not committed yet, and the measured time that each takes.

    Only commits that take as many rows as may be in one tell of the pace: a smaller one leaves nobody waiting, and
    tells no more than that the pace is at least its own. The time of one begins with the end of the one before, so that
    the turns of everybody else are in it.
    """

    def __init__(self) -> None:
        self._rows = 0
        """The rows waiting, or being written."""
        self._writing = 0
        self._is_full = False
        self._began = 0.0
        self._ended = 0.0
        self._row_s = 0.0

    @property
    def wait_s(self) -> float:
        """The time that what comes now waits until all before it is committed."""
        return self._rows * self._row_s

    def came(self, rows: int) -> None:
        """Count rows that wait."""
        self._rows += rows

    def went(self, rows: int) -> None:
        """Count rows that wait no longer."""
        self._rows -= rows

    def began(self, rows: int, since: float, *, is_full: bool) -> None:
        """Note that *rows* are being written, the first waiting *since*; *is_full* if no more than that go at once."""
        self._writing, self._is_full = rows, is_full
        self._began = max(since, self._ended)

    def ended(self, now: float) -> None:
        """Note that what was being written is written, or will not be."""
        if not self._writing:
            return
        row_s = (now - self._began) / self._writing
        # Those who wait are refused while it is slow, so that no commit might be full again.
        if self._is_full or row_s < self._row_s:
            self._row_s += (row_s - self._row_s) * (_NEWEST_COUNTS if self._row_s else 1.0)
        self._rows -= self._writing
        self._writing = 0
        self._ended = now
