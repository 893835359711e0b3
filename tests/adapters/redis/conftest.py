"""Links to a real server."""

from __future__ import annotations

from asyncio import AbstractEventLoop as Loop
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
import uvloop

from scripts.services.redis import Redis
from tests.adapters.redis.noted import Noted
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], Loop]]:
    """The event loop of the product."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def server(redis_alone: Redis) -> Redis:
    """An empty server that this test may harm."""
    assert redis_alone.ask(redis_alone.node(1), "FLUSHALL") == "+OK\r\n"
    return redis_alone


@pytest.fixture
def noted() -> Noted:
    """The events of a test."""
    return Noted()


@pytest_asyncio.fixture
async def wire(server: Redis, noted: Noted) -> AsyncIterator[SinglePrimary]:
    """A link to it."""
    opened = SinglePrimary(RedisSettings(url=server.url, timeout_s=5), noted)
    await opened.start()
    yield opened
    await opened.stop()
