"""The deadlines of answers: whoever waits for a commit is answered in time, whatever holds the writer up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Final

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.stores.sql.commit_queue import CommitQueue, Queued
from waypost.stores.sql.faults import StoreFault, refusal

_WHILE_AT_WORK: Final = 0.25
"""How soon it looks again while the writer is at work and nobody is seen to wait, as a share of what may be waited."""


class CommitDeadlines:
    """The watch, on the event loop, over what waits for its commit and what is being committed.

    What has not begun when its time is over is taken out of the queue and refused. What is accepted by a commit under
    way cannot be taken back: its caller is told that nobody knows yet, and whatever comes of it is found by a repeat.
    """

    def __init__(self, queue: CommitQueue, loop: asyncio.AbstractEventLoop, wait_s: float) -> None:
        self._queue = queue
        self._loop = loop
        self._wait_s = wait_s
        self._timer: asyncio.TimerHandle | None = None
        self._round: object | None = None
        self._overdue_round: object | None = None
        self._lock = threading.Lock()
        self._taken: Sequence[Queued] = ()
        """The operations that left the queue, and wait for the store to let their transaction begin."""
        self._refused: set[Queued] = set()
        """The operations of those that were answered meanwhile."""
        self._under_way: Sequence[Queued] = ()

    @property
    def is_overdue(self) -> bool:
        """Whether the writer is still at what somebody has waited for in vain."""
        return self._round is not None and self._round is self._overdue_round

    def watch(self) -> None:
        """Watch an operation that was just queued, until its time is over."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._wait_s, self._look)

    # These run in the writer thread.

    def round_began(self) -> None:
        """Note that the writer is at work from now on."""
        self._round = object()

    def took(self, batch: Sequence[Queued]) -> None:
        """Note that *batch* has left the queue, and can still be refused."""
        self._taken = batch

    def begins(self, batch: Sequence[Queued]) -> list[Queued]:
        """Return which of *batch* were not refused: nobody can take those back any more."""
        with self._lock:
            self._taken = ()
            left = [queued for queued in batch if queued not in self._refused]
            self._under_way = self._under_way or left
            return left

    def round_ended(self) -> None:
        """Note that what was under way has its answers."""
        with self._lock:
            self._taken, self._under_way, self._round = (), (), None
            self._refused.clear()

    def _look(self) -> None:
        self._timer = None
        if self._queue.is_closed:
            return  # the drain has a deadline of its own, and writes what it can
        now = time.monotonic()
        with self._lock:
            this_round, under_way = self._round, self._under_way
            late = [each for each in self._taken if not each.kind.patient and each.since <= now - self._wait_s]
            self._refused.update(late)
        for queued in (*late, *self._queue.drop_late(now - self._wait_s)):
            self._overdue_round = this_round
            _answer(queued, refusal(StoreFault.BUSY))
        accepting = [queued for queued in under_way if queued.kind.overtakes and not queued.future.done()]
        for queued in accepting:
            if queued.since <= now - self._wait_s:
                self._overdue_round = this_round
                _answer(queued, _in_doubt())
        oldest = min(self._queue.oldest(now), *(queued.since for queued in accepting if not queued.future.done()), now)
        if oldest < now:
            self._timer = self._loop.call_later(oldest + self._wait_s - now, self._look)
        elif self._round is not None:  # something may be on its way from the queue into the commit
            self._timer = self._loop.call_later(self._wait_s * _WHILE_AT_WORK, self._look)


def _answer(queued: Queued, error: Unavailable) -> None:
    if not queued.future.done():
        queued.future.set_exception(error)


def _in_doubt() -> Unavailable:
    why = "the store did not say in time whether it was kept: repeat it with the same idempotency key"
    return Unavailable(why, ErrorCode.STORAGE_AWAY)
