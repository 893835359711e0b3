"""Tickers: tasks that are repeated by the clock, or rest until there is something to do."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.domain.time import SECOND_MS, Instant
from waypost.ports.changes import Changes
from waypost.telemetry import Event, Telemetry


class Rest(Struct, frozen=True):
    """The time for which a task need not be called again, though its period is over."""

    longest_s: float
    """Seconds since the last call ended."""
    ends_with_news: bool = True
    """Whether it ends as soon as something is written into the store; it is none where nobody would tell that."""


UNTIL_WRITTEN: Final = Rest(30.0)
"""The rest of what found nothing to do, and will not before something is written; a little of it by the clock alone."""
ELSEWHERE: Final = Rest(1.0, ends_with_news=False)
"""The rest of what another process does, until that is asked again."""

TOGETHER_S: Final = 0.25
"""Seconds between the moments at which waits of at least so long end: each time that a process wakes costs more than
most of its tickers do."""
_PHASE_S = os.getpid() % 25 / 100
"""The place of those moments in time, another one in most processes."""
_EARLY_S: Final = 0.002
"""Seconds by which an event loop may be early."""

_SET_CLOCK_S: Final = 5.0
"""Seconds until what waits for a time sees that the clock was set."""


def until(at: Instant | None, now: Instant) -> Rest:
    """Return the rest until the time *at*, where nothing is to be done before; None is never."""
    return Rest(_SET_CLOCK_S if at is None else min(_SET_CLOCK_S, max(0, at - now) / SECOND_MS))


def together_s(now_s: float, wanted_s: float) -> float:
    """Return for how long to wait from *now_s* on, a little less than *wanted_s*, to wake at a moment with others."""
    if wanted_s < TOGETHER_S:
        return wanted_s
    return wanted_s - (now_s + wanted_s - _PHASE_S + _EARLY_S) % TOGETHER_S + _EARLY_S


def pause_s(now_s: float, wanted_s: float) -> float:
    """Return the same, or a little more where that would be less than half of *wanted_s*."""
    waits_s = together_s(now_s, wanted_s)
    return waits_s if waits_s >= wanted_s / 2 else waits_s + TOGETHER_S


Act = Callable[[], Awaitable[Rest | None] | Rest | None]
"""A task, which may return for how long it can rest."""
Ticker = tuple[str, float, Act]
"""The name, the period in seconds, and the task."""


async def every(period_s: float, act: Act, telemetry: Telemetry, name: str, changes: Changes | None = None) -> None:
    """Call *act* for ever, *period_s* after the last call ended, or after the rest that it returned (``pause_s``).

    A failure is logged and does not end it. *changes* are those of the store.
    """
    while True:
        seen = 0 if changes is None else changes.version
        rest = await _acted(act, telemetry, name)
        if rest is None or rest.longest_s <= period_s:
            await _pause(period_s)
        elif not rest.ends_with_news:
            await _pause(rest.longest_s)
        elif changes is None:
            await _pause(period_s)
        else:
            await _news(changes, seen, period_s, rest.longest_s)


async def _pause(wanted_s: float) -> None:
    await asyncio.sleep(pause_s(asyncio.get_running_loop().time(), wanted_s))


async def _news(changes: Changes, seen: int, least_s: float, most_s: float) -> None:
    """Wait until something was written since *seen*: for so long at least, and at most."""
    began_s = time.monotonic()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(together_s(asyncio.get_running_loop().time(), most_s)):
            await changes.wait(seen)
    if (waited_s := time.monotonic() - began_s) < least_s:
        await asyncio.sleep(least_s - waited_s)


async def _acted(act: Act, telemetry: Telemetry, name: str) -> Rest | None:
    try:
        doing = act()
        return await doing if inspect.isawaitable(doing) else doing
    except Unavailable:
        return None  # the store reports its outage itself, once; the next tick tries again
    except Exception as surprise:  # noqa: BLE001 - a ticker must outlive any fault of one tick
        telemetry.event(Event.STAGE_FAILED, stage=name, error=type(surprise).__name__)
        return None
