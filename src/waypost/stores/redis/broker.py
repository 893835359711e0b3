"""A topic on Redis Streams, for others to read.

    <prefix>{<lane>}:<app>          a stream for each lane and app, a lane in one slot: entries with the one field ``b``
    <prefix><channel>_notification  a stream for each channel, where topics are by channel: fields ``key`` and ``b``

Whoever reads brings a consumer group. Entries go when they are a week old, read or not: nobody's absence fills Redis.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from waypost.domain.ids import AppId, format_id
from waypost.domain.notification import Lane
from waypost.domain.time import DAY_MS
from waypost.ports.broker import ChannelEntry, Entry, channel_topic
from waypost.stores.redis.commands import Redis

KEPT_MS: Final = 7 * DAY_MS


class RedisPublisher:
    """See Publisher."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self._redis = redis
        self._prefix = prefix

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """See Publisher; each write trims what is too old, about."""
        oldest = _oldest()
        await self._redis.execute(
            [("XADD", self._stream(lane, each.app), "MINID", "~", oldest, "*", "b", each.body) for each in entries]
        )

    def _stream(self, lane: Lane, app: AppId) -> str:
        return f"{self._prefix}{{{lane}}}:{app}"


class RedisChannelPublisher:
    """See ChannelPublisher."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self._redis = redis
        self._prefix = prefix

    async def publish(self, channel: str, entries: Sequence[ChannelEntry]) -> None:
        """See ChannelPublisher; each write trims what is too old, about."""
        trimmed = ("XADD", f"{self._prefix}{channel_topic(channel)}", "MINID", "~", _oldest(), "*")
        said = [("key", format_id(each.notification_id), "b", each.body) for each in entries]
        await self._redis.execute([(*trimmed, *each) for each in said])


def _oldest() -> int:
    return max(0, int(time.time() * 1000) - KEPT_MS)
