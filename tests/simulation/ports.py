"""The ports of a store as one process reaches them: late, not at all, or dying on the way there or back."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from waypost.domain.errors import Unavailable

if TYPE_CHECKING:
    from tests.simulation.process import Process

P = TypeVar("P")
DIES = 0.004
"""The part of the calls on whose way there or back the process dies, while things go wrong."""


def reached(port: P, process: Process) -> P:
    """Return *port* as *process* reaches it."""
    return cast("P", _Reached(port, process))


class _Reached:
    """A port behind a way that is late, cut, or the end of who goes it; what it does happens between two steps."""

    def __init__(self, port: object, process: Process) -> None:
        self._port = port
        self._process = process

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not inspect.iscoroutinefunction(method):
            return method
        way = _way(self._process, name, method)
        setattr(self, name, way)
        return way


def _way(process: Process, name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def call(*given: Any, **named: Any) -> Any:
        await _walk(process)
        if process.is_cut:
            raise Unavailable("the store is away")
        began_s = process.now_s
        late = process.world.referee.late(given[1]) if name == "settle" else ()
        answer = await method(*given, **named)
        process.world.referee.saw(process, name, given, answer, began_s)
        if late:
            process.world.referee.refused(process, late, answer)
        await _walk(process)
        return answer

    return call


async def _walk(process: Process) -> None:
    """Take the way to the store or back; some never arrive."""
    draw = process.world.chance.random()
    if draw < 0.55:
        return
    if draw > 1 - DIES and process.world.is_stormy:
        process.world.kill(process)
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(0 if draw < 0.8 else (draw - 0.8) / 4 if draw < 0.98 else process.world.chance.random() / 2)
