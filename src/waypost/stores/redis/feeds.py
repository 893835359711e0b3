"""A cache of the first page of each feed, and of its counts.

    <prefix>feed:<app>:<user>     hash, gone after ten minutes
        p           the stamp of the feed that was read first, and its first page: msgpack
        c           a stamp, and the counts

The stamp changes in the commit that changes a feed, so what was kept under the stamp of now is as new as the feed,
whatever became of anybody who wrote, and of Redis: nothing has to be told to the cache, and nothing can be forgotten.
What leaves a feed with its notification, which no user did, is shown until the ten minutes are over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import SECOND_MS
from waypost.ports.feed import Feed, FeedCounts, FeedPage, FeedQuery
from waypost.stores.redis.commands import Redis, RedisAway, Script
from waypost.stores.redis.settings import RedisSettings
from waypost.telemetry import Metric, Telemetry

Kept = TypeVar("Kept")

ENTRIES: Final = 50
"""The entries of a first page that is kept."""
TTL_S: Final = 600

_KEEP = Script("""
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
""")
_STAMP_BYTES: Final = 8
_encode = msgspec.msgpack.Encoder().encode
_page = msgspec.msgpack.Decoder(FeedPage).decode
_counts = msgspec.msgpack.Decoder(FeedCounts).decode


class CachedPages:
    """See FeedPages."""

    def __init__(self, feed: Feed, redis: Redis, settings: RedisSettings, telemetry: Telemetry) -> None:
        self._feed = feed
        self._redis = redis
        self._prefix = f"{settings.prefix}feed:"
        self._telemetry = telemetry

    async def page(self, query: FeedQuery) -> FeedPage:
        """See FeedPages; of an entry the state of its delivery is as it was when the page was kept."""
        if query != FeedQuery(query.app, query.user_id, limit=query.limit) or query.limit > ENTRIES:
            return await self._feed.page(query)
        whole = replace(query, limit=ENTRIES)
        page = await self._through((query.app, query.user_id), "p", _page, lambda: self._feed.page(whole))
        if len(page.entries) <= query.limit:
            return page
        return FeedPage(page.entries[: query.limit], page.entries[query.limit - 1].place)

    async def counts(self, app: AppId, user_id: UserId) -> FeedCounts:
        """See FeedPages."""

        async def read() -> FeedCounts:
            (found,) = await self._feed.counts([(app, user_id)])
            return found

        return await self._through((app, user_id), "c", _counts, read)

    async def forget(self, app: AppId, user_id: UserId) -> None:
        """See FeedPages."""
        with contextlib.suppress(RedisAway):  # then it ends by itself
            await self._redis.execute([("DEL", self._key((app, user_id)))])

    async def _through(
        self,
        user: tuple[AppId, UserId],
        field: str,
        decode: Callable[[bytes], Kept],
        read: Callable[[], Awaitable[Kept]],
    ) -> Kept:
        """Return what is kept under the stamp of now; else read it, and keep it under the stamp from before."""
        stamp = await self._feed.stamp(*user)
        if stamp is None:
            return await read()
        mark, key = stamp.to_bytes(_STAMP_BYTES, "big"), self._key(user)
        try:
            (kept,) = await self._redis.execute([("HGET", key, field)])
        except RedisAway:
            self._count("bypassed")
            return await read()
        if kept is not None and kept.startswith(mark):
            with contextlib.suppress(msgspec.DecodeError):  # another version has written it
                found = decode(kept[_STAMP_BYTES:])
                self._count("hit")
                return found
        self._count("miss")
        found = await read()
        with contextlib.suppress(RedisAway):
            await self._redis.execute([_KEEP([key], field, mark + _encode(found), TTL_S * SECOND_MS)])
        return found

    def _count(self, result: str) -> None:
        self._telemetry.count(Metric.CACHE_LOOKUPS, cache="feed", result=result)

    def _key(self, user: tuple[AppId, UserId]) -> str:
        return f"{self._prefix}{user[0]}:{user[1]}"  # an app's id has no colon
