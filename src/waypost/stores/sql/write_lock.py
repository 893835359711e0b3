"""Waypost's own write lock: every write of every process runs under it, briefly, and the end of each checkpoint."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FIRST_PAUSE_S = 0.000_05
_LONGEST_PAUSE_S = 0.001
HURRIED_S = 1.0
"""Seconds after an urgent write for which others hold the lock but shortly: the next one may be near."""
_LOOK_EVERY_S = 0.01
"""Seconds for which what was read of others' urgent writes is taken as it was."""
_URGENT_AGAIN_S = 0.005
"""Seconds after an urgent write of a process in which it takes its turn as others do."""
_LET_PASS_S = 0.05
"""Seconds for which who has the turn lets those pass who are urgent: together they could keep it out for ever."""
_TIME = struct.Struct("<d")


class LockTimeout(Exception):
    """The error that somebody else held the lock for too long."""


class WriteLock:
    """A write lock: ``flock`` on two files of its own beside the database, never on the database itself.

    Who wants to write first takes the turn, then the lock, then gives the turn on: a process that writes without a
    pause cannot keep the others out. Who is urgent takes no turn: others let it have the lock first, for a moment. In a
    file of its own it holds a part while it waits, and writes down when it had the lock. Used by one thread at a time.
    """

    def __init__(self, run_dir: Path) -> None:
        self._turn = _open(run_dir / "turn.lock")
        self._write = _open(run_dir / "write.lock")
        self._urgent = _open(run_dir / "urgent.lock")
        self._was_urgent_s = float("-inf")
        self._looked_s = float("-inf")
        self._seen_s = float("-inf")
        """When somebody was urgent, as of the last look."""

    @contextmanager
    def hold(self, timeout_s: float, *, urgent: Callable[[], bool] | None = None) -> Iterator[None]:
        """Hold the lock; LockTimeout after *timeout_s* seconds.

        *urgent* is asked while it waits: from then on it goes before others, unless it just did.
        """
        deadline = time.monotonic() + timeout_s
        goes_first = not self._take_in_turn(
            deadline, lambda: urgent is not None and urgent() and not self._was_urgent_for(_URGENT_AGAIN_S)
        )
        if goes_first:
            self._take_urgently(deadline)
        try:
            if goes_first:
                self._note_urgent()
            yield
        finally:
            if goes_first:
                self._was_urgent_s = time.monotonic()  # again: its next urgent turn is so long after the end of this
            fcntl.flock(self._write, fcntl.LOCK_UN)

    def was_urgent(self) -> bool:
        """Tell whether who uses this lock was urgent just now."""
        return self._was_urgent_for(HURRIED_S)

    def _was_urgent_for(self, seconds: float) -> bool:
        return time.monotonic() - self._was_urgent_s < seconds

    def is_hurried(self) -> bool:
        """Tell whether somebody was urgent just now; any thread may ask."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_EVERY_S:
            written = os.pread(self._urgent, _TIME.size, 0)
            self._seen_s = _TIME.unpack(written)[0] if len(written) == _TIME.size else float("-inf")
            self._looked_s = now_s  # last: another thread that sees it sees what was read, too
        return 0 <= now_s - self._seen_s < HURRIED_S

    def _take_urgently(self, deadline: float) -> None:
        _until(deadline, lambda: _is_taken(self._urgent, fcntl.LOCK_SH))
        try:
            _until(deadline, lambda: _is_taken(self._write))
        finally:
            fcntl.flock(self._urgent, fcntl.LOCK_UN)

    def _note_urgent(self) -> None:
        """Write down when somebody urgent had the lock; on a disk that takes nothing others hold it as long as ever."""
        self._was_urgent_s = self._seen_s = time.monotonic()
        with suppress(OSError):
            os.pwrite(self._urgent, _TIME.pack(self._seen_s), 0)

    def _take_in_turn(self, deadline: float, goes_first: Callable[[], bool]) -> bool:
        """Take the lock in turn; False, without it, as soon as it *goes first*."""
        if not _until(deadline, lambda: _is_taken(self._turn), goes_first):
            return False
        alone_s = time.monotonic() + _LET_PASS_S
        try:
            return _until(deadline, lambda: self._may_take(alone_s) and _is_taken(self._write), goes_first)
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _may_take(self, alone_s: float) -> bool:
        """Tell whether nobody who is urgent waits, or all that do may wait: from *alone_s* on."""
        if time.monotonic() >= alone_s:
            return True
        if not _is_taken(self._urgent):
            return False
        fcntl.flock(self._urgent, fcntl.LOCK_UN)
        return True

    def close(self) -> None:
        """Close the files; a lock held is free then."""
        os.close(self._turn)
        os.close(self._write)
        os.close(self._urgent)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _until(deadline: float, is_taken: Callable[[], bool], is_over: Callable[[], bool] = lambda: False) -> bool:
    """Try again and again; False once it *is over*, LockTimeout from *deadline* on. flock has no timeout of its own."""
    pause_s = _FIRST_PAUSE_S
    while not is_over():
        if is_taken():
            return True
        if time.monotonic() >= deadline:
            raise LockTimeout
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return False


def _is_taken(lock: int, how: int = fcntl.LOCK_EX) -> bool:
    """Take *lock* where nobody has it; tell whether that was so."""
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
