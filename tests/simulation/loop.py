"""An event loop without a machine: its clock is virtual, the order of what is ready is drawn, and owners can die."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, cast


class Owner:
    """A process of the simulation: whatever is begun in its context is its own, and goes with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_frozen = False
        self.held: list[Step] = []
        """What became ready while it was frozen."""
        self.tasks: list[asyncio.Task[Any]] = []
        """All its tasks: kept, so that those of a dead one are never closed, which would run their ``finally``."""
        self.context = copy_context()
        self.context.run(OWNER.set, self)


OWNER: ContextVar[Owner | None] = ContextVar("OWNER", default=None)


class Step:
    """A callback that is to run, now or later (what asyncio calls a handle)."""

    __slots__ = ("args", "callback", "context", "is_cancelled", "owner")

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...], context: Context | None) -> None:
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.owner = self.context.get(OWNER)
        self.is_cancelled = False

    def cancel(self) -> None:
        """See asyncio: it is passed over when its time comes."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        """See asyncio."""
        return self.is_cancelled


class SimulatedLoop:
    """The loop, as far as asyncio asks it: *chance* draws which of the ready steps runs next.

    Time passes where none is ready.
    """

    def __init__(self, chance: Random) -> None:
        self.now_s = 0.0
        self.steps = 0
        self.surprises: list[str] = []
        """The exceptions that nobody caught."""
        self.on_step: Callable[[], None] = lambda: None
        """Called before every step: the place where whatever is to happen between two steps happens."""
        self._chance = chance
        self._ready: list[Step] = []
        self._later: list[tuple[float, int, Step]] = []
        self._count = 0
        self.tasks: list[asyncio.Task[Any]] = []

    @property
    def _as_loop(self) -> asyncio.AbstractEventLoop:
        return cast("asyncio.AbstractEventLoop", self)

    def run(self, main: Coroutine[Any, Any, Any], until_s: float) -> bool:
        """Run *main* to its end, at most until *until_s*; tell whether it ended."""
        asyncio._set_running_loop(self._as_loop)  # how a loop says that it runs
        try:
            task = self.create_task(main)
            while not task.done():
                if not self._turn(until_s):
                    return False
            task.result()
            return True
        finally:
            asyncio._set_running_loop(None)

    def _turn(self, until_s: float) -> bool:
        """Run all that is ready, or let time pass; False where nothing is left to do or the time is over."""
        ready, later, draw = self._ready, self._later, self._chance.random
        if not ready:
            if not later or later[0][0] > until_s:
                return False
            self.now_s = max(self.now_s, later[0][0])
            while later and later[0][0] <= self.now_s:
                ready.append(heapq.heappop(later)[2])
        while ready:
            if len(ready) > 1:
                n = int(draw() * len(ready))
                ready[n], ready[-1] = ready[-1], ready[n]
            step = ready.pop()
            if not step.is_cancelled:
                self._run(step)
        return True

    def _run(self, step: Step) -> None:
        """Run one step, unless its owner is dead, or stands still; it may die or freeze in this very moment."""
        owner = step.owner
        if owner is None or not (owner.is_dead or owner.is_frozen):
            self.steps += 1
            self.on_step()
        if owner is not None and owner.is_dead:
            return
        if owner is not None and owner.is_frozen:
            owner.held.append(step)
            return
        try:
            step.context.run(step.callback, *step.args)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            self.surprises.append(f"{type(error).__name__}: {error}")

    def thaw(self, owner: Owner) -> None:
        """Let a frozen owner go on: everything that it missed is ready at once."""
        owner.is_frozen = False
        self._ready += owner.held
        owner.held = []

    def time(self) -> float:
        """Return the virtual time, s."""
        return self.now_s

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:
        """See asyncio; in no order with others that are ready."""
        step = Step(callback, args, context)
        self._ready.append(step)
        return cast("asyncio.Handle", step)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        step = Step(callback, args, context)
        self._count += 1
        heapq.heappush(self._later, (when, self._count, step))
        return cast("asyncio.TimerHandle", step)

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """See asyncio."""
        return asyncio.Future(loop=self._as_loop)

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        """See asyncio."""
        task = asyncio.Task(coro, loop=self._as_loop, name=name or "task", context=context)
        owner = OWNER.get() if context is None else context.get(OWNER)
        (self.tasks if owner is None else owner.tasks).append(task)
        return task

    def get_debug(self) -> bool:
        """Return False: asyncio asks."""
        return False

    def is_running(self) -> bool:
        """Return True: asyncio asks."""
        return True

    def is_closed(self) -> bool:
        """Return False: asyncio asks."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what nobody caught."""
        error = context.get("exception")
        self.surprises.append(f"{context.get('message')}: {type(error).__name__}: {error}")
