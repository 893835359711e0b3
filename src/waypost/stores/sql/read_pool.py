"""Threads that read the store, each on a connection of its own, and how long every query takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from waypost.stores.sql.driver import Connection
from waypost.telemetry import Metric, Telemetry

T = TypeVar("T")

Query = Callable[[Connection], T]


class ReadPool:
    """A pool of *size* threads that run queries by *read*."""

    def __init__(
        self, name: str, size: int, read: Callable[[Callable[[Connection], object]], object], telemetry: Telemetry
    ) -> None:
        self._name = name
        self._size = size
        self._read = read
        self._telemetry = telemetry
        self._asked = 0
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=f"waypost-{name}")

    async def run(self, query: Query[T]) -> T:
        """Run *query* in one of the threads."""
        found, _ = await self.timed(query)
        return found

    async def timed(self, query: Query[T]) -> tuple[T, float]:
        """Run *query* in one of the threads; return what it found and the seconds that it took there."""
        self._asked += 1
        try:
            found, seconds = await asyncio.get_running_loop().run_in_executor(self._threads, self._timed, query)
        finally:
            self._asked -= 1
        self._telemetry.observe(Metric.STORE_SECONDS, seconds, query=name_of(query))
        return found, seconds

    def measure(self) -> None:
        """Tell how many of the threads are busy, and how many queries wait for one."""
        busy = min(self._asked, self._size)
        for metric, n in (
            (Metric.STORE_POOL, self._size),
            (Metric.STORE_POOL_BUSY, busy),
            (Metric.STORE_POOL_WAITING, self._asked - busy),
        ):
            self._telemetry.gauge(metric, n, pool=self._name)

    async def close(self) -> None:
        """End the threads, after what they were asked for."""
        await asyncio.to_thread(self._threads.shutdown)

    def _timed(self, query: Query[T]) -> tuple[T, float]:
        started = time.monotonic()
        found: T = self._read(query)  # type: ignore[assignment] # it returns what the query does
        return found, time.monotonic() - started


def name_of(query: Callable[..., object]) -> str:
    """Name a query by the function that asks: ``SqlViews.page`` for a lambda in it, ``f`` for ``partial(f, …)``."""
    asks = query.func if isinstance(query, partial) else query
    return asks.__qualname__.partition(".<locals>")[0].lstrip("_")
