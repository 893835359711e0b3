"""What ``check-config --connect`` says of a Redis, and what it refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.services.redis import Redis
from waypost.bootstrap.reach import Reached, reach
from waypost.bootstrap.registry import load
from waypost.domain.errors import ConfigurationError

pytestmark = pytest.mark.asyncio

LOG = "stack: log\nkafka: {bootstrap: 127.0.0.1:1}\ndedup: redis\n"
"""A stack whose windows would end early."""
CACHE = "cache: redis\n"
REWRITING = ("aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1")


@pytest.fixture
def forgetful(server: Redis) -> Iterator[Redis]:
    """A server without a file that makes room where it needs to, as some caches are set up."""
    for line in ("CONFIG SET appendonly no", "CONFIG SET maxmemory-policy allkeys-lru"):
        assert server.ask(server.node(1), line) == "+OK\r\n"
    yield server
    for line in ("CONFIG SET appendonly yes", "CONFIG SET maxmemory-policy noeviction"):
        assert server.ask(server.node(1), line) == "+OK\r\n"
    while any(said in server.ask(server.node(1), "INFO persistence") for said in REWRITING):
        time.sleep(0.05)  # killed before its new file is whole, it would forget what it has said yes to


async def reached(folder: Path, server: Redis, text: str) -> Reached:
    """What is found with *text* in the configuration."""
    (folder / "waypost.yaml").write_text(f"apps: {{demo: {{}}}}\nredis: {{url: '{server.url}'}}\n{text}")
    (found,) = await reach(load(folder / "waypost.yaml", {}))
    return found


async def test_the_documented_set_up_is_fine_for_everything(tmp_path: Path, server: Redis) -> None:
    for text in (CACHE, LOG):
        found = await reached(tmp_path, server, text)
        assert found.problem is None
        assert found.what.endswith(", append-only file, noeviction")


async def test_what_forgets_may_be_a_cache_and_may_not_hold_keys(tmp_path: Path, forgetful: Redis) -> None:
    found = await reached(tmp_path, forgetful, CACHE)
    assert found.problem is None
    assert found.what.endswith(", no append-only file: a restart empties it, allkeys-lru")
    assert "windows end early" in str((await reached(tmp_path, forgetful, LOG)).problem)


async def test_one_that_is_away_is_a_problem(tmp_path: Path, server: Redis) -> None:
    server.kill()  # one that writes its first append-only file refuses to end
    found = await reached(tmp_path, server, CACHE)
    server.start()
    assert found.what == "away"
    assert str(found.problem).startswith("redis: Redis is away: ")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (CACHE, "redis"),
        (LOG, "redis"),
        ("dedup: redis\nredis: {url: 'redis://h'}\n", "dedup"),
    ],
)
async def test_what_cannot_be_is_named_when_the_configuration_is_read(tmp_path: Path, text: str, path: str) -> None:
    (tmp_path / "waypost.yaml").write_text(f"apps: {{demo: {{}}}}\n{text}")
    with pytest.raises(ConfigurationError) as told:
        load(tmp_path / "waypost.yaml", {})
    assert told.value.path == path
