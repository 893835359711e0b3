"""Deadlines of many requests by few timers: requests whose deadlines fall in one tick share a timer."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from .stream import Stream

# A deadline is noticed at most this much too late, never too early.
TICKS_PER_S: Final = 40


class Deadlines:
    """The requests that have not ended, by the tick in which they must have."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_passed: Callable[[Stream], None]) -> None:
        self._loop = loop
        self._on_passed = on_passed
        self._ticks: dict[int, set[Stream]] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, stream: Stream) -> None:
        """Watch *stream* until `discard`."""
        tick = int(stream.deadline * TICKS_PER_S) + 1
        stream.tick = tick
        waiting = self._ticks.get(tick)
        if waiting is None:
            self._ticks[tick] = {stream}
            heappush(self._order, tick)
            if self._order[0] == tick:
                self._arm()
        else:
            waiting.add(stream)

    def discard(self, stream: Stream) -> None:
        """Forget *stream*, if it is watched."""
        waiting = self._ticks.get(stream.tick)
        if waiting is not None:
            waiting.discard(stream)

    def stop(self) -> None:
        """Forget all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ticks.clear()
        self._order.clear()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._order[0] / TICKS_PER_S, self._pass)

    def _pass(self) -> None:
        self._timer = None
        # Where the loop calls a little too early, the timer is set once more.
        now = int(self._loop.time() * TICKS_PER_S)
        while self._order and self._order[0] <= now:
            for stream in self._ticks.pop(heappop(self._order)):
                self._on_passed(stream)
        if self._order and self._timer is None:
            self._arm()
