"""The Redis of a configuration, whatever its shape."""

from __future__ import annotations

from waypost.adapters.redis.commands import Redis
from waypost.adapters.redis.settings import RedisServer
from waypost.adapters.redis.wire import Wire
from waypost.telemetry import Telemetry


def redis_of(settings: RedisServer, telemetry: Telemetry) -> Redis:
    """Not yet started; ConfigurationError where the settings mean nothing."""
    if settings.cluster:
        from waypost.adapters.redis.cluster import Cluster  # noqa: PLC0415 - redis-py takes long to import

        return Cluster(settings, telemetry)
    return Wire(settings, telemetry)
