"""The queue of operations for commit: filled on the event loop, emptied by the writer's thread."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.ports.pressure import Pressure
from waypost.stores.sql.pace import CommitPace
from waypost.stores.sql.transaction import OperationKind

_ACCEPTS_FOR_A_SETTLE: Final = 4
"""The cost of a row that is settled, in rows that are accepted."""
LATE_S: Final = 0.25
"""Seconds of waiting after which outcomes have the larger part of the commits."""
OUTCOMES_WAIT_S: Final = 0.05
"""Seconds for which outcomes wait while one urgent commit follows the other; then every second commit is theirs."""
HURRIED: Final = 8
"""The part of its usual rows that a commit has while what is critical waits for others' commits."""


@dataclass(slots=True, eq=False)
class Queued:
    """An operation that waits for its commit."""

    kind: OperationKind[Any, Any]
    op: Any
    rows: int
    future: asyncio.Future[Any]
    since: float = field(default_factory=time.monotonic)
    is_urgent: bool = False
    """Whether it goes before others of its line."""


class CommitQueue:
    """The queue before a commit: two lines that take turns while both wait: what is accepted, and the rest.

    What is accepted has the first turn and the larger ones, since a caller waits. Once outcomes are late that is the
    other way round: what was sent and is not recorded would be sent again after a crash, and what is accepted could
    not be delivered faster anyway. Neither line waits for more than one turn of the other, but outcomes behind what is
    urgent for ``OUTCOMES_WAIT_S``.
    """

    def __init__(self, commit_rows: int) -> None:
        """Create the queue; a commit takes about *commit_rows* settled rows, or as much work of accepted ones."""
        self._commit_rows = commit_rows
        self._wake = threading.Condition()
        self._accepts: deque[Queued] = deque()
        self._others: deque[Queued] = deque()
        self._given_back: list[Queued] = []
        self._was_accepts = False
        """Whether the last commit was of what is accepted."""
        self._was_urgent = False
        """Whether it was of something urgent."""
        self._pace = CommitPace()
        self.is_closed = False

    def put(self, queued: Queued) -> None:
        """Add an operation at the end; Unavailable once this is closed."""
        with self._wake:
            if self.is_closed:
                raise Unavailable("the store is closing", ErrorCode.SHUTTING_DOWN)
            line = self._line_of(queued)
            if queued.is_urgent:
                line.insert(next((n for n, each in enumerate(line) if not each.is_urgent), len(line)), queued)
            else:
                line.append(queued)
            if queued.kind.overtakes:
                self._pace.came(queued.rows)
            self._wake.notify()

    def put_first(self, queued: Sequence[Queued]) -> None:
        """Add operations that are to be taken before all others."""
        with self._wake:
            self._put_first(queued)

    def give_back(self, queued: Sequence[Queued]) -> None:
        """Give back what could not be written: it comes first again, after a pause."""
        self._given_back += queued

    def close(self) -> None:
        """Close the queue: nothing more comes in; `wait` ends once nothing is left."""
        with self._wake:
            self.is_closed = True
            self._wake.notify()

    def wake(self) -> None:
        """Wake the writer, to look how the store is."""
        with self._wake:
            self._wake.notify()

    def wait(self, is_unwell: Callable[[], bool], pause_s: float) -> bool:
        """Wait for operations, and with a store that *is_unwell* no longer than *pause_s*; False is the end."""
        with self._wake:
            if self._given_back:
                self._put_first(self._given_back)
                self._given_back.clear()
                self._wake.wait_for(lambda: self.is_closed, pause_s)
            while not (self._accepts or self._others):
                if self.is_closed:
                    return False
                self._wake.wait(pause_s if is_unwell() else None)
                if is_unwell():
                    break
            return True

    def is_urgent(self, now: float) -> bool:
        """Tell whether the next commit is of something that goes before others."""
        with self._wake:
            return self._has_urgent() and self._takes_accepts(now)

    def _takes_accepts(self, now: float) -> bool:
        """Tell whether the next commit is of what is accepted: what is urgent goes first, until others wait long."""
        if not (self._accepts and self._others):
            return bool(self._accepts)
        if self._has_urgent():
            return not self._was_urgent or _age_s(self._others, now) < OUTCOMES_WAIT_S
        return not self._was_accepts

    def _has_urgent(self) -> bool:
        return bool(self._accepts) and self._accepts[0].is_urgent

    def take(self, now: float, *, hurried: bool = False) -> list[Queued]:
        """Take the operations of the next commit; fewer of them where others are *hurried*, or something here is."""
        with self._wake:
            self._was_accepts = self._takes_accepts(now)
            self._was_urgent = self._was_accepts and self._has_urgent()
            late = _age_s(self._others, now) > LATE_S
            line, is_larger = (self._accepts, not late) if self._was_accepts else (self._others, late)
            most = self._commit_rows * (_ACCEPTS_FOR_A_SETTLE if is_larger else 1)
            if hurried or self._has_urgent():
                most = max(1, most // HURRIED)
            taken: list[Queued] = []
            rows = 0
            while line and rows < most:
                taken.append(line.popleft())
                rows += taken[-1].rows
            if self._was_accepts:
                self._pace.began(rows, min(queued.since for queued in taken), is_full=rows >= most)
            return taken

    def written(self, now: float) -> None:
        """Note that what was taken last is committed, or will not be."""
        with self._wake:
            self._pace.ended(now)

    def pressure(self, now: float, most_s: float) -> Pressure:
        """Measure how long is waited, where *most_s* is the most that may be."""
        with self._wake:
            behind = next(([each] for each in self._accepts if not each.is_urgent), ())
            accepts_s = max(self._pace.wait_s, _age_s(self._accepts, now), _age_s(behind, now))
            others_s = _age_s(self._others, now)
        return Pressure(accepts_s / most_s, others_s / most_s)

    def oldest(self, now: float) -> float:
        """Return since when somebody waits who is not patient; *now* where nobody does."""
        with self._wake:
            return min((queued.since for queued in self._all() if not queued.kind.patient), default=now)

    def drop_late(self, latest: float) -> list[Queued]:
        """Take out what is not patient and came at *latest* or before; when closed, all."""
        with self._wake:
            late = [q for q in self._all() if self.is_closed or (not q.kind.patient and q.since <= latest)]
            gone = set(late)
            self._accepts = deque(q for q in self._accepts if q not in gone)
            self._others = deque(q for q in self._others if q not in gone)
            self._pace.went(sum(queued.rows for queued in late if queued.kind.overtakes))
            return late

    def _put_first(self, queued: Sequence[Queued]) -> None:
        for each in reversed(queued):
            self._line_of(each).appendleft(each)

    def _line_of(self, queued: Queued) -> deque[Queued]:
        return self._accepts if queued.kind.overtakes else self._others

    def _all(self) -> Iterable[Queued]:
        return itertools.chain(self._accepts, self._others)


def _age_s(line: Sequence[Queued], now: float) -> float:
    """Return how long the first of *line* has waited."""
    return now - line[0].since if line else 0.0
