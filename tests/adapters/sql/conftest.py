"""Stores on real files, and what tests need to fill them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest_asyncio

from waypost.adapters.sql.settings import SqlSettings
from waypost.adapters.sql.store import Store, open_store
from waypost.domain.time import Instant
from waypost.telemetry.sink import Silent

OpenStore = Callable[..., Awaitable[Store]]


class WallClock:
    """The real clocks."""

    def now(self) -> Instant:
        """See Clock."""
        return Instant(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()


def settings_of(database: Path, **changes: float) -> SqlSettings:
    """Settings with a small reserve."""
    return SqlSettings(f"sqlite:///{database}", **({"reserve_bytes": 1 << 16} | changes))  # type: ignore[arg-type]  # named in tests


@pytest_asyncio.fixture
async def open_at() -> AsyncIterator[OpenStore]:
    """Opens stores that own every free shard; they are closed after the test."""
    opened: list[Store] = []

    async def open_(database: Path, **changes: float) -> Store:
        store = await open_store(settings_of(database, **changes), clock=WallClock(), peers=None, telemetry=Silent())
        await store.shards.acquire()
        opened.append(store)
        return store

    yield open_
    for store in opened:
        await store.close()
