"""Waypost's own write lock: every write and checkpoint of every process runs under it, briefly."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FIRST_PAUSE_S = 0.000_05
_LONGEST_PAUSE_S = 0.001


class LockTimeout(Exception):
    """The error that somebody else held the lock for too long."""


class WriteLock:
    """A write lock: ``flock`` on two files of its own beside the database, never on the database itself.

    Who wants to write first takes the turn, then the lock, then gives the turn on: a process that writes without a
    pause cannot keep the others out. Used by one thread at a time.
    """

    def __init__(self, run_dir: Path) -> None:
        self._turn = _open(run_dir / "turn.lock")
        self._write = _open(run_dir / "write.lock")

    @contextmanager
    def hold(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock; LockTimeout after *timeout_s* seconds."""
        deadline = time.monotonic() + timeout_s
        _take(self._turn, deadline)
        try:
            _take(self._write, deadline)
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._write, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close both files; a lock held is free then."""
        os.close(self._turn)
        os.close(self._write)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _take(lock: int, deadline: float) -> None:
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockTimeout from None
        else:
            return
        time.sleep(pause_s)  # flock has no timeout of its own
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
