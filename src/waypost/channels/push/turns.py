"""Work that takes the processor, such as encryption, a few pieces at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

W = TypeVar("W")

TURN: Final = 32
"""Messages encrypted in one turn of the loop: each takes about 0.15 ms, and others want their turn, too."""


class Turns(Generic[W]):
    """A queue that calls *do* with some pieces at a time, in order, never before ``add`` returned; the loop works
    between.

    What is added in turns of the loop that follow each other is done together, up to the number of one turn: each
    change between encryption and the rest costs both their caches.
    """

    def __init__(self, do: Callable[[Sequence[W]], None]) -> None:
        self._do = do
        self._waiting: deque[W] = deque()
        self._grew = False

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
        if self._grew and len(self._waiting) < TURN:
            self._grew = False
            asyncio.get_running_loop().call_soon(self._take_turn)
            return
        some = self._next()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._take_turn)
        if some:
            self._do(some)

    def _next(self) -> list[W]:
        return [self._waiting.popleft() for _ in range(min(TURN, len(self._waiting)))]
