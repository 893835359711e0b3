"""The Redis that processes share beside the store, and what is kept there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING

from waypost.bootstrap.paths import log_of
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.domain.ids import AppId, UserId
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.feed import Feed, FeedPages
from waypost.ports.holds import Holds
from waypost.stores.sql.store import Store
from waypost.telemetry import Telemetry

if TYPE_CHECKING:
    from waypost.stores.redis.commands import Redis
    from waypost.stores.redis.devices import CachedDevices

WARM_PAGE = 500


@asynccontextmanager
async def opened_redis(config: Config, telemetry: Telemetry) -> AsyncIterator[Redis | None]:
    """Open the Redis of a configuration, if there is one; one that is away is looked for in the background."""
    if config.redis is None:
        yield None
        return
    try:
        from waypost.stores.redis.opening import redis_of  # noqa: PLC0415 - its client is an optional extra
    except ModuleNotFoundError:
        raise ConfigurationError("redis", f"its client is not installed: {how_to_install('redis')}") from None
    redis = redis_of(config.redis, telemetry)
    await redis.start()
    try:
        yield redis
    finally:
        await redis.stop()


def cached(devices: Devices, config: Config, redis: Redis | None, telemetry: Telemetry) -> Devices:
    """Put the registry behind the cache that the configuration asks for."""
    return devices if config.cache is None else _cache(devices, config, redis, telemetry)


def cached_pages(feed: Feed, config: Config, redis: Redis | None, telemetry: Telemetry) -> FeedPages | None:
    """Put the first pages of feeds behind the cache that the configuration asks for; None where it asks for none."""
    if config.cache is None:
        return None
    from waypost.stores.redis.feeds import CachedPages  # noqa: PLC0415 - as above

    assert redis is not None and config.redis is not None, "the configuration was checked when it was read"
    return CachedPages(feed, redis, config.redis, telemetry)


def keys_of(store: Store, config: Config, redis: Redis | None) -> tuple[Holds, Dedup]:
    """Choose where dedup keys are held until a log has made a request durable, and where their windows are ended."""
    if config.dedup is None:
        return store.holds, store.dedup
    from waypost.stores.redis.holds import ForgetfulDedup, RedisHolds  # noqa: PLC0415 - as above

    assert redis is not None and config.redis is not None, "the configuration was checked when it was read"
    holds = RedisHolds(redis, config.redis.prefix, store.dedup.claimed)
    return holds, ForgetfulDedup(store.dedup, store.ledger.forget, holds)


async def warm_devices(devices: Devices, config: Config, app: str, users: Iterable[str]) -> tuple[int, int]:
    """Cache an app's users ahead of a campaign, a page at a time; how many users and devices it was."""
    if config.cache is None:
        raise ConfigurationError("cache", "there is none to warm; set it to redis")
    remaining = iter(users)
    seen = found = 0
    telemetry = log_of(config)
    async with opened_redis(config, telemetry) as redis:
        cache = _cache(devices, config, redis, telemetry)
        while page := list(islice(remaining, WARM_PAGE)):
            seen += len(page)
            found += await cache.warm([(AppId(app), UserId(user_id)) for user_id in page])
    return seen, found


def _cache(devices: Devices, config: Config, redis: Redis | None, telemetry: Telemetry) -> CachedDevices:
    from waypost.stores.redis.devices import CachedDevices  # noqa: PLC0415 - as above

    assert redis is not None and config.redis is not None, "the configuration was checked when it was read"
    return CachedDevices(devices, redis, config.redis, telemetry)
