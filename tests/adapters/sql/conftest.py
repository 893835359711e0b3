"""Stores on real files, and what tests need to fill them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.empty_store import put_empty
from waypost.domain.time import Instant
from waypost.stores.sql.settings import SqlSettings
from waypost.stores.sql.store import Store, open_store
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
    """Settings with a small reserve, by which no write is refused because the disk is slow."""
    return SqlSettings(f"sqlite:///{database}", **({"reserve_bytes": 1 << 16, "lock_timeout_s": 60.0} | changes))  # type: ignore[arg-type]  # named in tests


@pytest_asyncio.fixture
async def open_at() -> AsyncIterator[OpenStore]:
    """Opens stores that own every free shard; they are closed after the test."""
    opened: list[Store] = []

    async def open_(database: Path, **changes: float) -> Store:
        put_empty(database)
        store = await open_store(settings_of(database, **changes), clock=WallClock(), peers=None, telemetry=Silent())
        await store.shards.acquire()
        opened.append(store)
        return store

    yield open_
    for store in opened:
        await store.close()


class Actor:
    """A process of actor.py."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def do(self, what: str, **how: Any) -> Any:
        """Have it done; the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": what, **how}).encode() + b"\n")
        return json.loads(await self.process.stdout.readline())

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


StartActor = Callable[..., Awaitable[Actor]]


@pytest_asyncio.fixture
async def start_actor() -> AsyncIterator[StartActor]:
    """Starts actors; they are killed after the test."""
    actors: list[Actor] = []

    async def start(database: Path, **environment: str) -> Actor:
        command = [sys.executable, "-m", "tests.adapters.sql.actor", str(database)]
        pipe = asyncio.subprocess.PIPE
        how: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "limit": 1 << 24, "env": os.environ | environment}
        actors.append(Actor(await asyncio.create_subprocess_exec(*command, **how)))
        return actors[-1]

    yield start
    for actor in actors:
        await actor.kill()
