"""Deadlines of many requests by few timers: batches of requests whose deadlines fall in one tick share a timer.

They count only while the loop runs. A process that was stopped, or got no CPU, must read what has come meanwhile
before it judges: while requests are watched the loop is looked at every `BEAT_S`, and a gap counts for `LONGEST_GAP_S`
at most.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from .stream import Batch

# A deadline is noticed at most this much too late, never too early.
TICKS_PER_S: Final = 40
BEAT_S: Final = 0.25
LONGEST_GAP_S: Final = 0.5


class RequestDeadlines:
    """The batches of requests that have not all ended, by the tick in which they must have.

    Ticks are of running time: the loop's clock without what was lost in gaps.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_passed: Callable[[list[Batch]], None]) -> None:
        self._loop = loop
        self._on_passed = on_passed
        self._ticks: dict[int, set[Batch]] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._looked_at = 0.0
        self._lost_s = 0.0

    def add(self, batch: Batch) -> None:
        """Watch *batch* until `discard`, or until its deadline has passed."""
        batch.tick = int((batch.deadline - self._lost_s) * TICKS_PER_S) + 1
        self._watch(batch)

    def extend(self, batch: Batch) -> None:
        """Watch *batch*, whose deadline has passed, until it need not be waited for any more."""
        batch.tick += int((batch.answer_by - batch.deadline) * TICKS_PER_S)
        self._watch(batch)

    def discard(self, batch: Batch) -> None:
        """Stop watching *batch*, if it is watched."""
        waiting = self._ticks.get(batch.tick)
        if waiting is not None:
            waiting.discard(batch)

    def stop(self) -> None:
        """Stop watching all streams."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ticks.clear()
        self._order.clear()

    def _watch(self, batch: Batch) -> None:
        tick = batch.tick
        waiting = self._ticks.get(tick)
        if waiting is not None:
            waiting.add(batch)
            return
        self._ticks[tick] = {batch}
        heappush(self._order, tick)
        if self._order[0] == tick:
            if self._timer is None:
                self._looked_at = self._loop.time()
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due = self._order[0] / TICKS_PER_S + self._lost_s
        self._timer = self._loop.call_at(min(due, self._looked_at + BEAT_S), self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        self._lost_s += max(0.0, now - self._looked_at - LONGEST_GAP_S)
        self._looked_at = now
        # Where the loop calls a little too early, the timer is set once more.
        tick = int((now - self._lost_s) * TICKS_PER_S)
        order = self._order
        passed: list[Batch] = []
        while order and (order[0] <= tick or not self._ticks[order[0]]):
            passed += self._ticks.pop(heappop(order))
        if passed:
            self._on_passed(passed)
        if order and not self._is_armed():
            self._arm()

    def _is_armed(self) -> bool:
        """Tell whether a timer is set; asked in ``_look`` itself, compiled code would take its own None for granted."""
        return self._timer is not None
