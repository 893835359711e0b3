"""The write lock between processes: in turns, but for who is urgent."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from waypost.stores.sql import write_lock as module
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.sqlite import SqliteEngine
from waypost.stores.sql.write_lock import LockTimeout, WriteLock

PATIENCE_S = 30.0


@pytest.fixture
def for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have whoever has the turn let others pass, however long the test takes to make them want to."""
    monkeypatch.setattr(module, "_LET_PASS_S", PATIENCE_S)


def _always() -> bool:
    return True


class _Writers:
    """Threads that want the lock, each as a process of its own would, and in which order they had it."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._threads: list[threading.Thread] = []
        self.had: list[str] = []

    def wants(self, name: str, *, urgent: Callable[[], bool] = lambda: False) -> None:
        """Let one more want it."""
        thread = threading.Thread(target=self._hold, args=(name, urgent))
        thread.start()
        self._threads.append(thread)

    def _hold(self, name: str, urgent: Callable[[], bool]) -> None:
        lock = WriteLock(self._run_dir)
        with lock.hold(PATIENCE_S, urgent=urgent):
            self.had.append(name)
        lock.close()

    def end(self) -> None:
        """Wait until all have had it."""
        for thread in self._threads:
            thread.join()


@pytest.mark.usefixtures("for_long")
def test_who_is_urgent_has_it_next_whoever_waited_first(tmp_path: Path) -> None:
    holder, writers = WriteLock(tmp_path), _Writers(tmp_path)
    with holder.hold(PATIENCE_S):
        writers.wants("first")
        _wait_for(holder._turn)
        writers.wants("second")
        writers.wants("urgent", urgent=_always)
        _wait_for(holder._urgent)
    writers.end()
    assert writers.had[0] == "urgent"
    assert sorted(writers.had) == ["first", "second", "urgent"]
    holder.close()


@pytest.mark.usefixtures("for_long")
def test_who_becomes_urgent_while_it_waits_its_turn_has_it_next(tmp_path: Path) -> None:
    """Something critical came in meanwhile."""
    holder, writers = WriteLock(tmp_path), _Writers(tmp_path)
    was_asked, has_come = threading.Event(), threading.Event()

    def urgent() -> bool:
        was_asked.set()
        return has_come.is_set()

    with holder.hold(PATIENCE_S):
        writers.wants("first")
        _wait_for(holder._turn)
        writers.wants("urgent", urgent=urgent)
        assert was_asked.wait(PATIENCE_S)
        has_come.set()
        _wait_for(holder._urgent)
    writers.end()
    assert writers.had == ["urgent", "first"]
    holder.close()


def test_others_know_for_a_while_that_somebody_was_urgent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urgent, other = WriteLock(tmp_path), WriteLock(tmp_path)
    now_s = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    assert not other.is_hurried()
    with urgent.hold(PATIENCE_S):
        assert not other.is_hurried()
    with urgent.hold(PATIENCE_S, urgent=_always):
        assert urgent.is_hurried()
        assert urgent.was_urgent(), "in its first urgent turn, too: it leaves the log to others"
    now_s += 0.02
    assert other.is_hurried()
    now_s += module.HURRIED_S
    assert not other.is_hurried()
    for lock in (urgent, other):
        lock.close()


def test_who_just_was_urgent_takes_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has something urgent all the time cannot keep the others out."""
    urgent, waiting = WriteLock(tmp_path), WriteLock(tmp_path)
    monkeypatch.setattr(time, "monotonic", lambda: 1_000.0)
    with urgent.hold(PATIENCE_S, urgent=_always):
        pass
    assert module._is_taken(waiting._turn), "another has the turn"
    with pytest.raises(LockTimeout), urgent.hold(0.0, urgent=_always):
        pass
    monkeypatch.setattr(time, "monotonic", lambda: 1_001.0)
    with urgent.hold(0.0, urgent=_always):
        pass
    for lock in (urgent, waiting):
        lock.close()


def test_who_was_urgent_for_long_takes_its_turn_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment counts at which it gave the lock back: a slow disk lets nobody keep the others out."""
    urgent, waiting = WriteLock(tmp_path), WriteLock(tmp_path)
    now_s = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with urgent.hold(PATIENCE_S, urgent=_always):
        now_s += 5.0
    assert module._is_taken(waiting._turn), "another has the turn"
    with pytest.raises(LockTimeout), urgent.hold(0.0, urgent=_always):
        pass
    for lock in (urgent, waiting):
        lock.close()


def test_who_has_the_turn_lets_others_pass_for_a_moment_alone(tmp_path: Path) -> None:
    """Several that are urgent in turn would else keep it out for ever."""
    urgent, other = WriteLock(tmp_path), WriteLock(tmp_path)
    assert module._is_taken(urgent._urgent, fcntl.LOCK_SH), "somebody urgent waits, and never ends"
    with other.hold(PATIENCE_S):
        pass
    for lock in (urgent, other):
        lock.close()


def test_a_disk_that_takes_nothing_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark of who was urgent is only for others to be quick."""

    def is_full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    urgent, other = WriteLock(tmp_path), WriteLock(tmp_path)
    monkeypatch.setattr(os, "pwrite", is_full)
    with urgent.hold(PATIENCE_S, urgent=_always):
        pass
    with other.hold(0.0):
        pass
    for lock in (urgent, other):
        lock.close()


def _wait_for(file: int) -> None:
    """Wait until somebody has something of *file*."""
    while module._is_taken(file):
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(0.001)  # a lock does not tell when it is taken


def test_who_writes_has_the_interpreter_back_soon_while_somebody_is_hurried(tmp_path: Path) -> None:
    """And as late as ever when the lock is free again."""
    writer = SqliteEngine(SqlSettings(url=f"sqlite:///{tmp_path}/a.db")).open_writer()
    usual_s = sys.getswitchinterval()
    with writer.turn(PATIENCE_S):
        assert sys.getswitchinterval() == usual_s
    with writer.turn(PATIENCE_S, urgent=_always):
        pass
    with writer.turn(PATIENCE_S):
        assert sys.getswitchinterval() < usual_s
    assert sys.getswitchinterval() == usual_s
    writer.close()
