"""The Redis of a configuration, whatever its shape."""

from __future__ import annotations

from waypost.stores.redis.commands import Redis
from waypost.stores.redis.settings import RedisServer
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Telemetry


def redis_of(settings: RedisServer, telemetry: Telemetry) -> Redis:
    """Build a Redis client, not yet started; ConfigurationError where the settings mean nothing."""
    if settings.cluster:
        from waypost.stores.redis.cluster import ClusterClient  # noqa: PLC0415 - redis-py takes long to import

        return ClusterClient(settings, telemetry)
    return SinglePrimary(settings, telemetry)
