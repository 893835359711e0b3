"""Groups: the messages that wait while no stream is free, and when they stop waiting (requirements S1-83 to S1-86).

FCM has no call for many messages any more; a group is as many requests, multiplexed, each with an answer of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, Generic, TypeVar

LARGEST: Final = 500
WINDOW_S: Final = 0.5

_Message = TypeVar("_Message")


class Group(Generic[_Message]):
    """A group of messages: sent at once while there is room; else gathered, and handed over by room, size or time.

    *room* says how many would go out now; *go* takes messages whether there is room or not: what is handed over
    without room waits in the pool, in its order.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        room: Callable[[], int],
        go: Callable[[Iterable[_Message]], None],
        *,
        window_s: float = WINDOW_S,
    ) -> None:
        self._loop = loop
        self._room = room
        self._go = go
        self._window_s = window_s
        self._waiting: deque[_Message] = deque()
        self._window: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, messages: Sequence[_Message]) -> None:
        """Send what there is room for; what is left waits behind what waits already."""
        if not messages:
            return
        if not self._waiting and len(messages) <= self._room():
            self._go(messages)
            return
        self._waiting.extend(messages)
        self.fill()
        while len(self._waiting) >= LARGEST:
            self._hand_over(LARGEST)
        if self._waiting and self._window is None:
            self._window = self._loop.call_later(self._window_s, self.flush)

    def fill(self) -> None:
        """Send as many messages as go out now, the oldest first, since streams may be free."""
        if self._waiting:
            count = min(self._room(), len(self._waiting))
            if count:
                self._hand_over(count)

    def flush(self) -> None:
        """Hand over all that waits; nothing happens where nothing does."""
        if self._waiting:
            self._hand_over(len(self._waiting))

    def _hand_over(self, count: int) -> None:
        leaving = list(islice(self._waiting, count))
        for _ in leaving:
            self._waiting.popleft()
        if not self._waiting and self._window is not None:
            self._window.cancel()
            self._window = None
        self._go(leaving)
