"""The cache of first pages: as new as the feed whatever fails, hit by most, and small."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from scripts.services.redis import Redis
from tests.adapters.redis.noted import Noted
from tests.contract.bench import APP, notification
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.ports.feed import FeedCounts, FeedPage, FeedQuery, Folder, Mark, Marking, NewEntry
from waypost.ports.work import NewNotification, Work
from waypost.stores.redis.feeds import ENTRIES, CachedPages
from waypost.stores.redis.settings import RedisSettings
from waypost.stores.redis.wire import SinglePrimary
from waypost.telemetry import Event, Metric

pytestmark = pytest.mark.asyncio

ANN = UserId("ann")
KEY = "waypost:feed:demo:ann"
SETTINGS = RedisSettings(url="redis://unused")
RUN = 1_000
CHANGES = {
    Mark.SEEN: ({Mark.SEEN}, set[Mark]()),
    Mark.READ: ({Mark.READ}, set[Mark]()),
    Mark.UNREAD: (set[Mark](), {Mark.READ}),
    Mark.ARCHIVED: ({Mark.ARCHIVED, Mark.READ}, set[Mark]()),
    Mark.UNARCHIVED: (set[Mark](), {Mark.ARCHIVED}),
    Mark.DELETED: ({Mark.DELETED}, set[Mark]()),
    Mark.RESTORED: (set[Mark](), {Mark.DELETED}),
}
"""What each mark adds to an entry, and what it takes away."""


class Feeds:
    """Feeds on SQLite."""

    def __init__(self, store: SqlUnderTest, work: Work) -> None:
        self.feed = store.feed
        self.clock = store.clock
        self._work = work
        self._place = 0

    async def bring(self, user: str = "ann", count: int = 1, body: str = "Hello") -> list[NotificationId]:
        """Bring entries into a feed."""
        now = self.clock.now()
        made = [notification(now, user=user) for _ in range(count)]
        made = [replace(each, content=replace(each.content, body=body)) for each in made]
        await self._work.accept([NewNotification(each) for each in made])
        self._place += count
        await self.feed.add(
            [NewEntry(APP, UserId(user), each.id, 0, self._place + n, now) for n, each in enumerate(made, -count)]
        )
        return [each.id for each in made]

    async def mark(self, mark: Mark, *ids: NotificationId, user: str = "ann") -> None:
        """Mark entries."""
        await self.feed.mark(Marking(APP, UserId(user), mark, self.clock.now(), ids))


@pytest_asyncio.fixture
async def feeds(tmp_path: Path) -> AsyncIterator[Feeds]:
    """Empty."""
    store = SqlUnderTest(f"sqlite:///{tmp_path / 'waypost.db'}")
    await store.open()
    (worker,) = await store.open_workers(1)
    yield Feeds(store, worker)
    await store.close()


@pytest.fixture
def pages(feeds: Feeds, wire: SinglePrimary, noted: Noted) -> CachedPages:
    """In front of them."""
    return CachedPages(feeds.feed, wire, SETTINGS, noted)


def lookups(noted: Noted) -> dict[str, int]:
    """How many were found how."""
    return {result: noted.counts[Metric.CACHE_LOOKUPS, f"feed {result}"] for result in ("hit", "miss", "bypassed")}


async def read(pages: CachedPages, limit: int = ENTRIES, user: str = "ann") -> tuple[FeedPage, FeedCounts]:
    """What the list shows."""
    return await pages.page(FeedQuery(APP, UserId(user), limit=limit)), await pages.counts(APP, UserId(user))


async def stored(feeds: Feeds, limit: int = ENTRIES, user: str = "ann") -> tuple[FeedPage, FeedCounts]:
    """What it should show."""
    (counts,) = await feeds.feed.counts([(APP, UserId(user))])
    return await feeds.feed.page(FeedQuery(APP, UserId(user), limit=limit)), counts


async def test_pages_of_every_length_are_those_of_the_feed_and_only_the_first_is_kept(
    pages: CachedPages, feeds: Feeds, noted: Noted
) -> None:
    for count in (ENTRIES - 1, 1, 5):
        await feeds.bring(count=count)
        for limit in (1, 20, ENTRIES - 1, ENTRIES):
            for _ in range(2):
                assert await read(pages, limit) == await stored(feeds, limit)
    assert lookups(noted) == {"hit": 42, "miss": 6, "bypassed": 0}
    first, _ = await read(pages)
    for query in (
        FeedQuery(APP, ANN, before=first.before),
        FeedQuery(APP, ANN, Folder.UNREAD),
        FeedQuery(APP, ANN, types=("otp",)),
        FeedQuery(APP, ANN, limit=ENTRIES + 1),
    ):
        assert await pages.page(query) == await feeds.feed.page(query)
    assert lookups(noted)["hit"] == 43 + 1


@shows("S2-09", "S3-71")
async def test_what_was_confirmed_shows_at_once_to_every_process_and_stays_no_longer_than_ten_minutes(
    pages: CachedPages, feeds: Feeds, wire: SinglePrimary, noted: Noted
) -> None:
    other = CachedPages(feeds.feed, wire, SETTINGS, noted)
    (first,) = await feeds.bring()
    for mark in Mark:
        await read(other)
        await feeds.mark(mark, first)
        assert await read(other) == await read(pages) == await stored(feeds), mark
    await feeds.bring()
    assert await read(other) == await read(pages) == await stored(feeds)
    (ttl,) = await wire.execute([("PTTL", KEY)])
    assert 300_000 < ttl <= 600_000
    await feeds.feed.erase(APP, ANN)
    assert await read(other) == (FeedPage(()), FeedCounts())
    await pages.forget(APP, ANN)
    assert await wire.execute([("EXISTS", KEY)]) == [0]


@shows("S3-71")
async def test_a_late_reader_keeps_nothing_that_is_shown_after_a_mark(
    pages: CachedPages, feeds: Feeds, wire: SinglePrimary, noted: Noted
) -> None:
    """It read the counts before the mark, and keeps them after it."""
    (first,) = await feeds.bring()
    feed = feeds.feed

    class Overtaken:
        """The feed, of which an entry is marked as soon as its counts were read."""

        stamp = feed.stamp

        async def counts(self, users: Sequence[tuple[AppId, UserId]]) -> list[FeedCounts]:
            """See Feed."""
            found = await feed.counts(users)
            await feeds.mark(Mark.READ, first)
            return found

    late = CachedPages(Overtaken(), wire, SETTINGS, noted)  # type: ignore[arg-type]  # it is asked for these alone
    assert (await late.counts(APP, ANN)).unread == 1, "it was so when it was asked"
    assert (await pages.counts(APP, ANN)).unread == 0


async def test_over_an_outage_of_redis_nothing_stale_comes_back(
    pages: CachedPages, feeds: Feeds, server: Redis, noted: Noted
) -> None:
    """The server keeps over its restart what was cached before."""
    (first,) = await feeds.bring()
    await read(pages)
    server.stop()
    await noted.saw(Event.REDIS_AWAY)
    await feeds.mark(Mark.READ, first)
    assert await read(pages) == await stored(feeds)
    assert lookups(noted)["bypassed"] == 2
    server.start()
    await noted.saw(Event.REDIS_BACK)
    assert "hash" in server.ask(server.node(1), f"TYPE {KEY}")
    assert await read(pages) == await stored(feeds)


async def test_what_nobody_understands_is_read_anew(pages: CachedPages, feeds: Feeds, wire: SinglePrimary) -> None:
    await feeds.bring()
    stamp = await feeds.feed.stamp(APP, ANN)
    assert stamp is not None
    for unknown in (b"", b"\xc1", b"\x91\x01"):
        await wire.execute([("HSET", KEY, "p", stamp.to_bytes(8, "big") + unknown)])
        assert await read(pages) == await stored(feeds)


@shows("S2-09")
async def test_of_reads_that_follow_zipf_nine_in_ten_are_hits(pages: CachedPages, feeds: Feeds, noted: Noted) -> None:
    """Requirement S2-09: some users open their feed far more often than others; one time in forty something is new."""
    chance = random.Random(7)
    users = [f"u{n}" for n in range(300)]
    for user in users:
        await feeds.bring(user, 3)
    weights = [1 / (n + 1) for n in range(len(users))]
    for n, user in enumerate(chance.choices(users, weights, k=6_000)):
        if n % 40 == 0:
            await feeds.bring(user)
        await pages.page(FeedQuery(APP, UserId(user)))
    found = lookups(noted)
    assert found["hit"] / (found["hit"] + found["miss"]) >= 0.90, found


@shows("S2-10")
async def test_first_pages_need_about_a_sixtieth_of_the_memory_of_whole_feeds(
    pages: CachedPages, feeds: Feeds, wire: SinglePrimary
) -> None:
    """Requirement S2-10: of users with 3,000 entries, which are 33 a day over 90 days, and texts of all lengths."""
    kept = whole = 0
    for n in range(30):
        await feeds.bring(f"u{n}", ENTRIES, body="x" * 15 * n)
        page = await pages.page(FeedQuery(APP, UserId(f"u{n}")))
        all_of_it = FeedPage(page.entries * 60)
        await wire.execute([("HSET", "whole", "p", bytes(8) + msgspec.msgpack.encode(all_of_it))])
        for key in (f"waypost:feed:demo:u{n}", "whole"):
            (size,) = await wire.execute([("MEMORY", "USAGE", key)])
            kept, whole = (kept, whole + size) if key == "whole" else (kept + size, whole)
    assert 54 < whole / kept < 62, (kept, whole)


@shows("S1-147")
async def test_after_a_mixed_run_the_number_is_that_of_unread_rows(
    pages: CachedPages, feeds: Feeds, wire: SinglePrimary, noted: Noted
) -> None:
    """Requirement S1-147: entries come and are marked; two processes read the number that is reckoned."""
    chance, readers = random.Random(11), (pages, CachedPages(feeds.feed, wire, SETTINGS, noted))
    users = [f"user-{n}" for n in range(5)]
    inboxes: dict[str, dict[NotificationId, set[Mark]]] = {user: {} for user in users}
    for _ in range(RUN):
        user = chance.choice(users)
        inbox = inboxes[user]
        if not inbox or chance.random() < 0.3:
            inbox.update((each, set()) for each in await feeds.bring(user, chance.randint(1, 3)))
        else:
            mark = chance.choice(list(CHANGES))
            ids = chance.sample(list(inbox), min(len(inbox), chance.randint(1, 3)))
            await feeds.mark(mark, *ids, user=user)
            for each in ids:
                inbox[each] = (inbox[each] | CHANGES[mark][0]) - CHANGES[mark][1]
        unread = sum(not marks & {Mark.READ, Mark.ARCHIVED, Mark.DELETED} for marks in inbox.values())
        assert [(await each.counts(APP, UserId(user))).unread for each in readers] == [unread] * 2
    assert lookups(noted)["hit"] == RUN, "the second one finds what the first one kept"
