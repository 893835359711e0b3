"""The hub of live connections of one worker, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waypost.bootstrap.features import settings_of
from waypost.config import Config
from waypost.entrypoints.live.addressed import Addressed
from waypost.entrypoints.live.hub import Hub
from waypost.entrypoints.live.outward import Broadcast
from waypost.features.feed import FEED
from waypost.features.feed.parts import has_feeds
from waypost.features.feed.routes import view
from waypost.ports.clock import Clock
from waypost.ports.feed import Feed
from waypost.ports.peers import Peers
from waypost.telemetry import Telemetry

if TYPE_CHECKING:
    from waypost.stores.redis.commands import Redis


def hub_of(
    config: Config, feed: Feed, peers: Peers, clock: Clock, telemetry: Telemetry, redis: Redis | None = None
) -> Hub:
    """Build the hub, which is told of by those who find it in *redis*, or by all other workers through *peers*."""
    outward: Addressed | Broadcast = Broadcast(peers)
    if redis is not None and config.redis is not None and has_feeds(config):
        from waypost.stores.redis.gateways import RedisGateways  # noqa: PLC0415 - its client is an optional extra

        outward = Addressed(RedisGateways(redis, config.redis, telemetry), Broadcast(peers))
    return Hub(feed, outward, clock, telemetry, settings_of(config, FEED), view)
