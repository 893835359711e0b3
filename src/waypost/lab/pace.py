"""A gateway that works off only so many requests a second: the one queue in which all of its connections wait."""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from waypost.lab.faults import PaceFault

_TICK_S = 0.002
"""Seconds: turns that come sooner after each other share a timer."""
_STOOD_S = 1.0
"""Seconds for which turns are made up when a timer is late: a service that hung does not catch up on more."""


class QueueState(msgspec.Struct):
    """The counts of a queue since the last reset."""

    waiting: int = 0
    most_waiting: int = 0
    taken: int = 0
    given_up: int = 0
    """Requests taken although the stream had been reset or the connection lost by then."""
    turned_away: int = 0
    """Requests answered at once, because the queue was full."""
    lasted_s: float = 0.0
    """Seconds from the first turn to the last."""
    idle_s: float = 0.0
    """Seconds of that in which a turn was free and nothing waited."""
    stood_s: float = 0.0
    """Seconds of that in which the lab itself stood still while requests waited."""


class Queue:
    """A queue for a whole gateway, first come first served, at the pace of the rule in force.

    Without a rule whatever waits is taken at once.
    """

    def __init__(self) -> None:
        self._pace: PaceFault | None = None
        self._waiting: deque[Callable[[], bool]] = deque()
        self._next_s = 0.0
        self._first_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._state = QueueState()

    @property
    def state(self) -> QueueState:
        """The counts since the last reset."""
        return msgspec.structs.replace(self._state, waiting=len(self._waiting))

    def reset(self) -> None:
        """Begin counting from zero."""
        self._state = QueueState(most_waiting=len(self._waiting))

    def follow(self, pace: PaceFault | None) -> None:
        """Work at this pace; None ends the queue, and so takes all that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pace = pace
        now = asyncio.get_running_loop().time()
        if pace is not None:
            self._next_s = min(self._next_s, now + 1 / pace.per_s)
            self._arm()
            return
        while self._waiting:
            self._take(now)

    def offer(self, turn: Callable[[], bool]) -> bool:
        """Queue *turn*, which says whether anybody still waited for it; False where the queue is full."""
        if self._pace is None or len(self._waiting) >= self._pace.queue:
            self._state.turned_away += 1
            return False
        if not self._waiting:
            now = asyncio.get_running_loop().time()
            if self._state.taken:
                self._state.idle_s += max(0.0, now - self._next_s)
            self._next_s = max(self._next_s, now)
        self._waiting.append(turn)
        self._state.most_waiting = max(self._state.most_waiting, len(self._waiting))
        self._arm()
        return True

    def close(self) -> None:
        """Stop taking turns."""
        self._waiting.clear()
        self.follow(None)

    def _arm(self) -> None:
        if self._timer is None and self._waiting:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._next_s, loop.time() + _TICK_S), self._work_off)

    def _work_off(self) -> None:
        """Take everything whose turn has come."""
        self._timer = None
        if self._pace is None:
            return
        now = asyncio.get_running_loop().time()
        if now - self._next_s > _STOOD_S:
            self._state.stood_s += now - self._next_s
            self._next_s = now
        while self._waiting and self._next_s <= now:
            self._take(self._next_s)
            self._next_s += 1 / self._pace.per_s
        self._arm()

    def _take(self, turn_s: float) -> None:
        state = self._state
        if not state.taken:
            self._first_s = turn_s
        state.taken += 1
        state.lasted_s = turn_s - self._first_s
        state.given_up += not self._waiting.popleft()()
