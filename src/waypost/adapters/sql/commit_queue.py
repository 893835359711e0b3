"""What waits for its commit: put in on the event loop, taken out by the writer's thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from waypost.adapters.sql.transaction import Kind
from waypost.domain.errors import ErrorCode, Unavailable

_ACCEPTS_FOR_A_SETTLE = 4
"""What a row costs that is settled, in rows that are accepted."""


@dataclass(slots=True, eq=False)
class Queued:
    """An operation that waits for its commit."""

    kind: Kind[Any, Any]
    op: Any
    rows: int
    future: asyncio.Future[Any]
    since: float = field(default_factory=time.monotonic)


class CommitQueue:
    """Two lines, of what overtakes and of the rest, that take turns while both wait."""

    def __init__(self, commit_rows: int) -> None:
        """A commit takes about *commit_rows* rows that are settled, or as much work of those that are accepted."""
        self._commit_rows = commit_rows
        self._wake = threading.Condition()
        self._waiting: deque[Queued] = deque()
        self._given_back: list[Queued] = []
        self._overtaking = False
        """The last commit was of what overtakes."""
        self.is_closed = False

    def put(self, queued: Queued) -> None:
        """Add it at the end; Unavailable once this is closed."""
        with self._wake:
            if self.is_closed:
                raise Unavailable("the store is closing", ErrorCode.SHUTTING_DOWN)
            self._waiting.append(queued)
            self._wake.notify()

    def put_first(self, queued: Sequence[Queued]) -> None:
        """Add what was taken before all others."""
        with self._wake:
            self._waiting.extendleft(reversed(queued))

    def give_back(self, queued: Sequence[Queued]) -> None:
        """It could not be written: it comes first again, after a pause."""
        self._given_back += queued

    def close(self) -> None:
        """Nothing more comes in; `wait` ends once nothing is left."""
        with self._wake:
            self.is_closed = True
            self._wake.notify()

    def wake(self) -> None:
        """Let the writer look how the store is."""
        with self._wake:
            self._wake.notify()

    def wait(self, is_unwell: Callable[[], bool], pause_s: float) -> bool:
        """Wait for something to do, and with a store that *is_unwell* no longer than *pause_s*; False is the end."""
        with self._wake:
            if self._given_back:
                self._waiting.extendleft(reversed(self._given_back))
                self._given_back.clear()
                self._wake.wait_for(lambda: self.is_closed, pause_s)
            while not self._waiting:
                if self.is_closed:
                    return False
                self._wake.wait(pause_s if is_unwell() else None)
                if is_unwell():
                    break
            return True

    def take(self) -> list[Queued]:
        """What is accepted has a commit of its own and the first turn, since a caller waits; the rest has the next."""
        with self._wake:
            waiting = {queued.kind.overtakes for queued in self._waiting}
            self._overtaking = True in waiting and not (self._overtaking and False in waiting)
            most = self._commit_rows * (_ACCEPTS_FOR_A_SETTLE if self._overtaking else 1)
            taken: list[Queued] = []
            left: deque[Queued] = deque()
            rows = 0
            for queued in self._waiting:
                if rows < most and queued.kind.overtakes is self._overtaking:
                    rows += queued.rows
                    taken.append(queued)
                else:
                    left.append(queued)
            self._waiting = left
            return taken

    def oldest(self, now: float) -> float:
        """Since when somebody waits who is not patient; *now* where nobody does."""
        with self._wake:
            return min((queued.since for queued in self._waiting if not queued.kind.patient), default=now)

    def drop_late(self, latest: float) -> list[Queued]:
        """Take out what is not patient and came at *latest* or before; when closed, all."""
        with self._wake:
            late = [q for q in self._waiting if self.is_closed or (not q.kind.patient and q.since <= latest)]
            gone = set(late)
            self._waiting = deque(q for q in self._waiting if q not in gone)
            return late
