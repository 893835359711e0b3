"""A SQL store whose feeds are listed from their copies on Cassandra, under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.contract.registries import Keyspace, wake_ups_closed
from tests.contract.sql import SqlUnderTest
from waypost.domain.time import DAY_MS
from waypost.ports.feed import Feed, FeedPage, FeedQuery
from waypost.stores.cassandra.feed import CopiedFeed
from waypost.stores.cassandra.feed_copy import FeedCopy
from waypost.stores.cassandra.link import CassandraLink
from waypost.stores.sql.feed import SqlFeed
from waypost.telemetry import Silent

KEPT_MS = 90 * DAY_MS


class Unlisted(SqlFeed):
    """A feed that must not be asked for a page, unless it was never changed."""

    async def page(self, query: FeedQuery) -> FeedPage:
        """See Feed."""
        assert await self.stamp(query.app, query.user_id) is None, "the copy was to be read"
        return await super().page(query)


class CopiedUnderTest(SqlUnderTest):
    """The SQL store, with the copies beside it."""

    def __init__(self, url: str, link: CassandraLink, keyspace: str) -> None:
        super().__init__(url)
        self._copy = FeedCopy(link, keyspace, KEPT_MS)
        self._copied: CopiedFeed | None = None

    @property
    def feed(self) -> Feed:
        """See StoreUnderTest."""
        if self._copied is None:
            self._copied = CopiedFeed(Unlisted(self._opened.database, self.clock), self._copy, self.clock, Silent())
        return self._copied


@asynccontextmanager
async def copied_under_test(url: str, keyspace: Keyspace) -> AsyncIterator[CopiedUnderTest]:
    """The store, with no copies."""
    with wake_ups_closed():
        settings = await keyspace.empty()
        link = CassandraLink(settings, migrates=False)
        yield CopiedUnderTest(url, link, settings.keyspace)
        await link.close()
