"""Tickers: tasks that are repeated by the clock."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from waypost.domain.errors import Unavailable
from waypost.telemetry import Event, Telemetry

Ticker = tuple[str, float, Callable[[], Awaitable[object] | None]]
"""The name, the period in seconds, and the task."""


async def every(period_s: float, act: Callable[[], Awaitable[object] | None], telemetry: Telemetry, name: str) -> None:
    """Call *act* for ever, *period_s* after the last call ended; a failure is logged and does not end it."""
    while True:
        try:
            doing = act()
            if inspect.isawaitable(doing):
                await doing
        except Unavailable:
            pass  # the store reports its outage itself, once; the next tick tries again
        except Exception as surprise:  # noqa: BLE001 - a ticker must outlive any fault of one tick
            telemetry.event(Event.STAGE_FAILED, stage=name, error=type(surprise).__name__)
        await asyncio.sleep(period_s)
