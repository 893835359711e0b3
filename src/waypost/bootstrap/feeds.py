"""The place where feeds are listed from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waypost.bootstrap.devices import need_client
from waypost.config import Config
from waypost.domain.time import DAY_MS
from waypost.ports.clock import Clock
from waypost.ports.feed import Feed, FollowedFeed
from waypost.telemetry import Telemetry


@asynccontextmanager
async def opened_feed(
    config: Config, feed: FollowedFeed, slot: int, clock: Clock, telemetry: Telemetry
) -> AsyncIterator[Feed]:
    """Open the copies that the configuration names beside *feed*; while they are away, it is listed itself."""
    if config.feeds == "store":
        yield feed
        return
    need_client("feeds")
    from waypost.stores.cassandra.feed import CopiedFeed  # noqa: PLC0415 - its client is an optional extra
    from waypost.stores.cassandra.feed_copy import FeedCopy  # noqa: PLC0415 - the same
    from waypost.stores.cassandra.link import CassandraLink  # noqa: PLC0415 - the same

    assert config.cassandra is not None, "the configuration was checked when it was read"
    link = CassandraLink(config.cassandra, migrates=slot == 0 and config.devices == "store")
    copy = FeedCopy(link, config.cassandra.keyspace, config.retention.notifications_days * DAY_MS)
    copied = CopiedFeed(feed, copy, clock, telemetry)
    try:
        yield copied
    finally:
        await copied.close()
        await link.close()
