"""The engines that every suite runs on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.bench import Bench
from tests.contract.stores import MemoryUnderTest, StoreUnderTest


@pytest_asyncio.fixture(params=["memory"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[StoreUnderTest]:
    """An empty store of each engine."""
    opened = MemoryUnderTest()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def bench(store: StoreUnderTest) -> Bench:
    """One worker on an empty store."""
    return Bench(store, (await store.open_workers(1))[0])
