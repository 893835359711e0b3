"""The engines that every suite runs on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.bench import Bench
from tests.contract.sqlite import SqliteUnderTest
from tests.contract.stores import MemoryUnderTest, StoreUnderTest


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreUnderTest]:
    """An empty store of each engine."""
    if request.param == "memory":
        yield MemoryUnderTest()
        return
    opened = SqliteUnderTest(tmp_path / "waypost.db")
    await opened.open()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def bench(store: StoreUnderTest) -> Bench:
    """One worker on an empty store."""
    return Bench(store, (await store.open_workers(1))[0])
