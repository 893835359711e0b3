"""The hub of live connections of one worker, put together."""

from __future__ import annotations

from waypost.bootstrap.features import settings_of
from waypost.config import Config
from waypost.entrypoints.live.hub import Hub
from waypost.entrypoints.live.outward import Broadcast
from waypost.features.feed import FEED
from waypost.features.feed.routes import view
from waypost.ports.clock import Clock
from waypost.ports.feed import Feed
from waypost.ports.peers import Peers
from waypost.telemetry import Telemetry


def hub_of(config: Config, feed: Feed, peers: Peers, clock: Clock, telemetry: Telemetry) -> Hub:
    """Build the hub, which is told of by the other workers through *peers*."""
    return Hub(feed, Broadcast(peers), clock, telemetry, settings_of(config, FEED), view)
