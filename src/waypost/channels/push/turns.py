"""Work that takes the processor, such as encryption, a few pieces at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

W = TypeVar("W")

TURN: Final = 32
"""The most pieces in one turn of the loop."""
_LEAST: Final = 4
"""The fewest pieces in one turn, where more wait."""
_TURN_S: Final = 0.004
"""Seconds that a turn is meant to take at most, since others want theirs, too: about 25 messages with fresh keys."""


class Turns(Generic[W]):
    """A queue that calls *do* with some pieces at a time, in order, never before ``add`` returned; the loop works
    between.

    What is added in turns of the loop that follow each other is done together, up to the number of one turn: each
    change between encryption and the rest costs both their caches. That number follows how long the last turn took.
    """

    def __init__(self, do: Callable[[Sequence[W]], None], now_s: Callable[[], float]) -> None:
        """Create it; *now_s* is a clock that never goes back."""
        self._do = do
        self._now_s = now_s
        self._waiting: deque[W] = deque()
        self._grew = False
        self._at_once = TURN

    def add(self, one: W) -> None:
        """Queue a piece to be done in its turn."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._take_turn)
        self._waiting.append(one)
        self._grew = True

    def finish(self) -> None:
        """Do now what waits."""
        while self._waiting:
            self._do(self._next())

    def _take_turn(self) -> None:
        loop = asyncio.get_running_loop()
        if self._grew and len(self._waiting) < self._at_once:
            self._grew = False
            loop.call_soon(self._take_turn)
            return
        some = self._next()
        if self._waiting:
            loop.call_soon(self._take_turn)
        if some:
            began_s = self._now_s()
            self._do(some)
            each_s = (self._now_s() - began_s) / len(some)
            self._at_once = TURN if each_s * TURN <= _TURN_S else max(_LEAST, int(_TURN_S / each_s))

    def _next(self) -> list[W]:
        return [self._waiting.popleft() for _ in range(min(self._at_once, len(self._waiting)))]
