"""Answers in time: whoever waits for a commit is answered within the bound, whatever holds the writer up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from waypost.adapters.sql.commit_queue import CommitQueue, Queued
from waypost.adapters.sql.faults import Fault, refusal
from waypost.domain.errors import ErrorCode, Unavailable

_WHILE_AT_WORK: Final = 0.25
"""How soon it looks again while the writer is at work and nobody is seen to wait, as a share of what may be waited."""


class Deadlines:
    """Watches, on the event loop, what waits for its commit and what is being committed.

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
        self._under_way: Sequence[Queued] = ()

    @property
    def is_overdue(self) -> bool:
        """Whether the writer is still at what somebody has waited for in vain."""
        return self._round is not None and self._round is self._overdue_round

    def watch(self) -> None:
        """Look once the time of what was just queued is over."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._wait_s, self._look)

    # These run in the writer thread; each is one assignment of a reference.

    def round_began(self) -> None:
        """The writer is at work from now on."""
        self._round = object()

    def begins(self, batch: Sequence[Queued]) -> None:
        """Nobody can take *batch* back any more."""
        self._under_way = batch

    def round_ended(self) -> None:
        """What was under way has its answers."""
        self._under_way, self._round = (), None

    def _look(self) -> None:
        self._timer = None
        if self._queue.is_closed:
            return  # the drain has a deadline of its own, and writes what it can
        this_round, under_way = self._round, self._under_way
        now = time.monotonic()
        for queued in self._queue.drop_late(now - self._wait_s):
            self._overdue_round = this_round
            _answer(queued, refusal(Fault.BUSY))
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
