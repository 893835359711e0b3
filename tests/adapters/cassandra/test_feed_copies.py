"""Copies of feeds on Cassandra: whatever is lost on the way to one, nobody is shown what is not so any more."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from tests.adapters.cassandra.steps import Killed, Steps, killed
from tests.contract.bench import APP, notification
from tests.contract.copied import KEPT_MS, Unlisted
from tests.contract.registries import Keyspace, wake_ups_closed
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.bootstrap.feeds import opened_feed
from waypost.config import Config
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, UserId
from waypost.ports.feed import FeedPage, FeedQuery, Folder, Mark, Marking, NewEntry
from waypost.ports.work import NewNotification, Work
from waypost.stores.cassandra.feed import CopiedFeed
from waypost.stores.cassandra.feed_copy import BATCH_PARTS, FeedCopy
from waypost.stores.cassandra.link import CassandraLink
from waypost.stores.cassandra.settings import CassandraSettings
from waypost.stores.sql.feed import SqlFeed
from waypost.telemetry import Metric, Silent

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

SEVERAL_BATCHES = BATCH_PARTS + 5
"""Entries that do not go into one batch."""


class Counted(Silent):
    """Counts what came of looking into copies."""

    def __init__(self) -> None:
        self.looked: Counter[str] = Counter()

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """See Telemetry."""
        if metric is Metric.CACHE_LOOKUPS:
            self.looked[labels["result"]] += int(n)


class Feeds:
    """A store on SQLite, copies on Cassandra, and a process with both."""

    def __init__(self, store: SqlUnderTest, work: Work, link: CassandraLink, keyspace: str) -> None:
        self.store = store
        self._work = work
        self.link = link
        self.keyspace = keyspace
        self._places = itertools.count(1)
        self._users = itertools.count(1)
        self.told = Counted()
        self.sql = SqlFeed(store._opened.database, store.clock)
        self.feed = self.restarted()

    def restarted(self) -> CopiedFeed:
        """The feeds as another process has them."""
        copy = FeedCopy(self.link, self.keyspace, KEPT_MS)
        return CopiedFeed(self.sql, copy, self.store.clock, self.told)

    def another_user(self) -> UserId:
        """A user of whom nothing is there yet."""
        return UserId(f"user {next(self._users)}")

    async def accepted(self, user: UserId, count: int) -> list[NewEntry]:
        """Notifications that are to come into the feed."""
        now = self.store.clock.now()
        made = [notification(now, user=user) for _ in range(count)]
        await self._work.accept([NewNotification(each) for each in made])
        return [NewEntry(APP, user, each.id, 0, next(self._places), now) for each in made]

    def marking(self, user: UserId, mark: Mark, *ids: NotificationId, until: NotificationId | None = None) -> Marking:
        """An order of that user."""
        return Marking(APP, user, mark, self.store.clock.now(), ids, until)

    async def check(self, feed: CopiedFeed, user: UserId) -> None:
        """Every list is as the store has it, and in the end it comes from the copy."""
        for _ in range(2):
            for folder in Folder:
                query = FeedQuery(APP, user, folder, limit=10)
                assert _ids(await feed.page(query)) == _ids(await self.sql.page(query))
            await feed.mended()
        self.told.looked.clear()
        for query in _queries(user):
            assert _ids(await feed.page(query)) == _ids(await self.sql.page(query)), query
        if await self.sql.stamp(APP, user) is not None:
            assert self.told.looked == {"hit": len(_queries(user))}


def _queries(user: UserId) -> list[FeedQuery]:
    sizes = (1, 10, 500)
    return [FeedQuery(APP, user, folder, limit=limit) for folder in Folder for limit in sizes]


def _ids(page: FeedPage) -> tuple[object, ...]:
    shown = [(each.record.notification.id, each.seen_at, each.read_at, each.archived_at) for each in page.entries]
    return shown, page.before


@pytest.fixture(scope="module")
def tables(cassandra_hosts: tuple[str, ...]) -> Keyspace:
    """A keyspace for the tests here."""
    return Keyspace(cassandra_hosts)


@pytest_asyncio.fixture
async def feeds(tables: Keyspace, tmp_path: Path) -> AsyncIterator[Feeds]:
    """Feeds with nothing in them."""
    store = SqlUnderTest(f"sqlite:///{tmp_path}/waypost.db")
    await store.open()
    (work,) = await store.open_workers(1)
    with wake_ups_closed():
        settings = await tables.empty()
        link = CassandraLink(settings, migrates=False)
        made = Feeds(store, work, link, settings.keyspace)
        yield made
        await made.feed.close()
        await link.close()
    await store.close()


async def bring_one(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """One entry comes."""
    await feeds.feed.add(entries[-1:])


async def bring_many(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """More come than go into one batch."""
    await feeds.feed.add(entries)


async def read_some(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """Two are read."""
    await feeds.feed.mark(feeds.marking(user, Mark.READ, *(each.notification_id for each in entries[:2])))


async def read_all(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """All that is there is read."""
    await feeds.feed.mark(feeds.marking(user, Mark.READ, until=entries[-2].notification_id))


async def delete_and_restore(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """One is deleted, and comes back."""
    for mark in (Mark.DELETED, Mark.RESTORED):
        await feeds.feed.mark(feeds.marking(user, mark, entries[0].notification_id))


async def mend(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """The feed was changed by who knows nothing of copies, and is read."""
    await feeds.sql.mark(feeds.marking(user, Mark.ARCHIVED, entries[0].notification_id))
    await feeds.feed.page(FeedQuery(APP, user))
    task = feeds.feed._mending.get((APP, user))
    if task is not None:
        await task


async def read_at_once(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """Two processes mark one entry each, in one transaction of the store where that is one writer."""
    marks = [feeds.marking(user, Mark.READ, each.notification_id) for each in entries[:2]]
    both = (feeds.feed.mark(marks[0]), feeds.restarted().mark(marks[1]))
    await asyncio.gather(*both, return_exceptions=True)


async def erase(feeds: Feeds, user: UserId, entries: list[NewEntry]) -> None:
    """The user is erased."""
    await feeds.feed.erase(APP, user)


Play = Callable[[Feeds, UserId, list[NewEntry]], Awaitable[None]]
PLAYS: list[tuple[Play, int]] = [
    (bring_one, 1),
    (bring_one, 3),
    (bring_many, SEVERAL_BATCHES),
    (read_some, 3),
    (read_all, SEVERAL_BATCHES),
    (delete_and_restore, 2),
    (mend, SEVERAL_BATCHES),
    (read_at_once, 3),
    (erase, 3),
]


async def begun(feeds: Feeds, play: Play, count: int) -> tuple[UserId, list[NewEntry]]:
    """A user with all but the last entry in the feed; with none where all are to come."""
    user = feeds.another_user()
    entries = await feeds.accepted(user, count)
    if play is not bring_many:
        await feeds.feed.add(entries[:-1])
    return user, entries


@shows("S2-08")
@pytest.mark.parametrize(("play", "count"), PLAYS)
async def test_a_process_that_ends_before_any_request_leaves_no_list_that_is_not_so(
    feeds: Feeds, play: Play, count: int
) -> None:
    """Requirements S2-08: a mark that was made is seen by whoever reads next, from the store or the copy."""
    for n in itertools.count(1):
        user, entries = await begun(feeds, play, count)
        steps = Steps(n, killed)
        async with steps.counted(feeds.link):
            with contextlib.suppress(Killed):
                await play(feeds, user, entries)
        feeds.feed = feeds.restarted()
        await feeds.check(feeds.feed, user)
        if not steps.came:
            break
    assert n > 1


async def come_between(feeds: Feeds, other: CopiedFeed, late: NewEntry) -> None:
    """Bring another entry, read all, and list the feed."""
    await other.add([late])
    await other.mark(feeds.marking(late.user_id, Mark.READ, until=late.notification_id))
    await other.page(FeedQuery(APP, late.user_id))


@pytest.mark.parametrize(("play", "count"), PLAYS)
async def test_another_process_that_comes_between_any_two_requests_makes_no_list_wrong(
    feeds: Feeds, play: Play, count: int
) -> None:
    for n in itertools.count(1):
        user, entries = await begun(feeds, play, count)
        other = feeds.restarted()
        (late,) = await feeds.accepted(user, 1)

        steps = Steps(n, partial(come_between, feeds, other, late))
        async with steps.counted(feeds.link):
            await play(feeds, user, entries)
        await other.mended()
        await feeds.check(feeds.feed, user)
        await feeds.check(other, user)
        if not steps.came:
            break
    assert n > 1


async def rows_of(feeds: Feeds, user: UserId) -> list[tuple[int | None, int | None]]:
    """The places in the copy, newest first, with the seconds that are left to each; one row where there is a stamp."""
    session, _ = await feeds.link.made()
    query = "SELECT place, ttl(entry) FROM {}.feed WHERE app = '{}' AND user_id = '{}'"
    return [(row[0], row[1]) for row in await session.execute(query.format(feeds.keyspace, APP, user))]


@shows("S2-08")
async def test_a_feed_is_opened_by_one_request_to_one_partition(feeds: Feeds) -> None:
    """Requirements S2-08: by user, newest first, and nothing of it is read from the store."""
    user = feeds.another_user()
    entries = await feeds.accepted(user, 60)
    await feeds.feed.add(entries)
    feeds.sql = Unlisted(feeds.store._opened.database, feeds.store.clock)
    steps = Steps(2, killed)
    async with steps.counted(feeds.link):
        page = await feeds.restarted().page(FeedQuery(APP, user, limit=50))
    assert not steps.came
    assert [each.place for each in page.entries] == [each.place for each in reversed(entries[-50:])]


async def test_an_entry_stays_in_the_copy_as_long_as_its_notification_at_most(feeds: Feeds) -> None:
    user = feeds.another_user()
    entries = await feeds.accepted(user, 3)
    await feeds.feed.add(entries)
    feeds.store.clock.advance(KEPT_MS // 2)
    await feeds.feed.mark(feeds.marking(user, Mark.READ, entries[2].notification_id))
    await feeds.feed.mark(feeds.marking(user, Mark.DELETED, entries[1].notification_id))
    (newest, half), (oldest, whole) = await rows_of(feeds, user)
    assert (newest, oldest) == (entries[2].place, entries[0].place), "what was deleted is not there any more"
    assert half is not None and whole is not None and half <= KEPT_MS // 2_000 < whole <= KEPT_MS // 1_000
    await feeds.feed.erase(APP, user)
    assert await rows_of(feeds, user) == []


def configured(settings: CassandraSettings) -> Config:
    """A configuration with feeds there."""
    return Config(apps={}, feeds="cassandra", cassandra=settings)


async def test_a_worker_opens_the_copies_that_its_configuration_names(feeds: Feeds, tables: Keyspace) -> None:
    user = feeds.another_user()
    entries = await feeds.accepted(user, 1)
    told = Counted()
    async with opened_feed(configured(tables.settings), feeds.sql, 0, feeds.store.clock, told) as feed:
        await feed.add(entries)
        await feed.page(FeedQuery(APP, user))
    assert told.looked == {"hit": 1}


async def test_without_cassandra_feeds_are_marked_and_listed_all_the_same_and_nobody_is_said_to_be_erased(
    feeds: Feeds,
) -> None:
    user = feeds.another_user()
    entries = await feeds.accepted(user, 2)
    nowhere = CassandraSettings(hosts=("127.0.0.1",), port=1, keyspace="nowhere")
    told = Counted()
    async with opened_feed(configured(nowhere), feeds.sql, 0, feeds.store.clock, told) as feed:
        await feed.page(FeedQuery(APP, user))
        await feed.add(entries)
        await feed.mark(feeds.marking(user, Mark.READ, entries[0].notification_id))
        page = await feed.page(FeedQuery(APP, user, Folder.UNREAD))
        assert [each.place for each in page.entries] == [entries[1].place]
        with pytest.raises(Unavailable):
            await feed.erase(APP, user)
    assert told.looked == {"bypassed": 1}
