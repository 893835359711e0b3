"""Limits that are counted in Redis, as a worker is put together; and while it is away."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from waypost.bootstrap.limits import opened_limiter
from waypost.bootstrap.registry import load
from waypost.bootstrap.shared import opened_redis
from waypost.domain.errors import Unavailable
from waypost.domain.limits import Granted, TokenBucket, Wait
from waypost.runtime.clock import SystemClock
from waypost.telemetry import Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

ONE = TokenBucket(1, 0.001)


@pytest.mark.parametrize("when_away", ["local", "refuse"])
async def test_while_redis_is_away_each_process_counts_for_itself_or_nothing_is_granted(
    redis_url: str, tmp_path: Path, when_away: str
) -> None:
    path = tmp_path / "waypost.yaml"
    tree = {"store": f"sqlite:///{tmp_path}/w.db", "redis": {"url": redis_url}, "apps": {"demo": {}}}
    path.write_text(yaml.safe_dump(tree | {"limits": {"counted_in": "redis", "when_away": when_away}}))
    config = load(path, {})
    async with opened_redis(config, Silent()) as redis:
        assert redis is not None
        with opened_limiter(config, redis, SystemClock()) as one, opened_limiter(config, redis, SystemClock()) as other:
            assert await one.take("b", ONE) == Granted(0)
            assert isinstance(await other.take("b", ONE), Wait), "they share it"
            await redis.stop()
            if when_away == "refuse":
                with pytest.raises(Unavailable):
                    await other.take("b", ONE)
                return
            assert await other.take("b", ONE) == Granted(0)
            assert isinstance(await other.take("b", ONE), Wait)
