"""The contract of Feed, on every engine."""

from __future__ import annotations

import msgspec
import pytest

from tests.contract.bench import APP, OTHER_APP, Bench, marking, new_id, notification
from waypost.domain.ids import NotificationId, UserId
from waypost.domain.notification import Notification
from waypost.domain.time import HOUR_MS, later
from waypost.ports.feed import (
    FeedCounts,
    FeedQuery,
    Folder,
    Mark,
    MarkedEntry,
    Marking,
    NewEntry,
    NewsQuery,
    Unread,
    UnreadQuery,
)

pytestmark = pytest.mark.asyncio
ANN = UserId("ann")


async def brought(bench: Bench, count: int = 1, user: str = "ann") -> list[Notification]:
    """Notifications that came into the user's feed, oldest first."""
    made = [notification(bench.now, user=user) for _ in range(count)]
    await bench.accept(*made)
    await bench.store.feed.add([entry(bench, one, place) for place, one in enumerate(made, 1)])
    return made


def entry(bench: Bench, made: Notification, place: int) -> NewEntry:
    return NewEntry(made.app, made.user_id, made.id, 0, place, bench.now)


async def listed(bench: Bench, folder: Folder = Folder.INBOX, **query: object) -> list[NotificationId]:
    asked = msgspec.structs.replace(FeedQuery(APP, ANN, folder), **query)
    return [each.record.notification.id for each in (await bench.store.feed.page(asked)).entries]


async def count(bench: Bench, user: str = "ann") -> FeedCounts:
    (found,) = await bench.store.feed.counts([(APP, UserId(user))])
    return msgspec.structs.replace(found, newest=0)


def order(bench: Bench, mark: Mark, *ids: NotificationId, until: NotificationId | None = None) -> Marking:
    return Marking(APP, ANN, mark, bench.now, ids, until)


async def test_a_feed_is_listed_newest_first_by_pages_and_counted(bench: Bench) -> None:
    made = await brought(bench, 5)
    await brought(bench, 1, user="bob")
    newest_first = [one.id for one in reversed(made)]
    assert await listed(bench) == newest_first
    page = await bench.store.feed.page(FeedQuery(APP, ANN, limit=2))
    assert [each.record.notification.content for each in page.entries] == [made[4].content, made[3].content]
    assert await listed(bench, before=page.before, limit=3) == newest_first[2:]
    assert (await bench.store.feed.page(FeedQuery(APP, ANN, limit=5))).before is None
    both = [(APP, UserId("bob")), (APP, ANN), (OTHER_APP, ANN)]
    assert await bench.store.feed.counts(both) == [FeedCounts(1, 1, 1), FeedCounts(5, 5, 5), FeedCounts()]


async def test_an_entry_that_is_brought_again_is_one(bench: Bench) -> None:
    (made,) = await brought(bench)
    assert await bench.store.feed.add([entry(bench, made, 1)]) == []
    assert await count(bench) == FeedCounts(1, 1)


async def test_what_its_user_does_not_have_any_more_comes_into_no_feed(bench: Bench) -> None:
    """The user was erased between the sending and the journal's reader."""
    gone = notification(bench.now)
    assert await bench.store.feed.add([entry(bench, gone, 1)]) == []
    assert await listed(bench) == []


async def test_each_mark_moves_an_entry_between_folders_and_counts(bench: Bench) -> None:
    (made,) = await brought(bench)
    feed, one = bench.store.feed, made.id
    table = [
        (Mark.SEEN, [one], [one], [], FeedCounts(1, 0)),
        (Mark.READ, [one], [], [], FeedCounts(0, 0)),
        (Mark.UNREAD, [one], [one], [], FeedCounts(1, 0)),
        (Mark.ARCHIVED, [], [], [one], FeedCounts(0, 0)),
        (Mark.UNARCHIVED, [one], [], [], FeedCounts(0, 0)),
        (Mark.DELETED, [], [], [], FeedCounts(0, 0)),
        (Mark.RESTORED, [one], [], [], FeedCounts(0, 0)),
    ]
    for mark, inbox, unread, archive, counts in table:
        for asked in (order(bench, mark, one), order(bench, mark, until=one)):
            archived = bool(await listed(bench, Folder.ARCHIVE)) or mark is Mark.RESTORED
            meant = [] if asked.until and archived else [MarkedEntry(one, 0)]
            assert await feed.meant(asked) == meant, mark
        assert await feed.mark(order(bench, mark, one)) == [MarkedEntry(one, 0)], mark
        assert await feed.mark(order(bench, mark, one)) == [], f"{mark}, again"
        assert await feed.meant(order(bench, mark, one)) == [], f"{mark}, again"
        found = [await listed(bench, folder) for folder in (Folder.INBOX, Folder.UNREAD, Folder.ARCHIVE)]
        assert found == [inbox, unread, archive], mark
        assert await count(bench) == counts, mark


async def test_reading_is_seeing_and_keeps_its_first_time(bench: Bench) -> None:
    (made,) = await brought(bench)
    first = bench.now
    await bench.store.feed.mark(order(bench, Mark.SEEN, made.id))
    bench.clock.advance(HOUR_MS)
    await bench.store.feed.mark(order(bench, Mark.READ, made.id))
    (found,) = (await bench.store.feed.page(FeedQuery(APP, ANN))).entries
    assert (found.seen_at, found.read_at) == (first, later(first, HOUR_MS))


async def test_all_up_to_an_entry_is_marked_and_nothing_newer(bench: Bench) -> None:
    first, second, third = await brought(bench, 3)
    await bench.store.feed.mark(order(bench, Mark.READ, first.id))
    assert await bench.store.feed.mark(order(bench, Mark.READ, until=second.id)) == [MarkedEntry(second.id, 0)]
    assert await listed(bench, Folder.UNREAD) == [third.id]
    assert await bench.store.feed.mark(order(bench, Mark.READ, until=new_id(bench.now))) == []


async def test_unknown_entries_and_those_of_others_stay_as_they_are(bench: Bench) -> None:
    (hers,) = await brought(bench, user="bob")
    assert await bench.store.feed.mark(order(bench, Mark.READ, hers.id, new_id(bench.now))) == []
    assert await bench.store.feed.mark(order(bench, Mark.READ, until=hers.id)) == []
    assert await count(bench, "bob") == FeedCounts(1, 1)


async def test_a_mark_that_came_before_its_entry_stays(bench: Bench) -> None:
    """What the user API marks is in a feed later, or never."""
    made = await bench.accepted()
    assert await bench.store.feed.mark(marking(made, Mark.READ, bench.now)) == [MarkedEntry(made.id, None)]
    assert (await listed(bench), await count(bench)) == ([], FeedCounts())
    await bench.store.feed.add([entry(bench, made, 7)])
    assert (await listed(bench), await count(bench)) == ([made.id], FeedCounts(0, 0))


async def test_entries_of_some_types_are_found_however_many_others_lie_between(bench: Bench) -> None:
    made = await brought(bench, 5)
    typed = notification(bench.now)
    typed = msgspec.structs.replace(typed, content=msgspec.structs.replace(typed.content, type="otp"))
    await bench.accept(typed)
    await bench.store.feed.add([entry(bench, typed, 0)])
    assert await listed(bench, types=("otp",), limit=1) == [typed.id]
    assert await listed(bench, types=("news",)) == []
    assert len(await listed(bench)) == len(made) + 1


async def tagged(bench: Bench, place: int, *tags: str) -> NotificationId:
    made = notification(bench.now)
    made = msgspec.structs.replace(made, content=msgspec.structs.replace(made.content, tags=tags))
    await bench.accept(made)
    await bench.store.feed.add([entry(bench, made, place)])
    return made.id


async def test_entries_with_a_tag_are_listed_by_pages_and_folders(bench: Bench) -> None:
    """Others may have it in their data, and other users have the same tags."""
    first = await tagged(bench, 1, "orders", "news")
    await tagged(bench, 2, "news")
    third = await tagged(bench, 3, "orders")
    plain = notification(bench.now, user="bob")
    plain = msgspec.structs.replace(plain, content=msgspec.structs.replace(plain.content, data={"tags": "orders"}))
    await bench.accept(plain)
    await bench.store.feed.add([entry(bench, plain, 4)])
    assert await listed(bench, tag="orders") == [third, first]
    page = await bench.store.feed.page(FeedQuery(APP, ANN, limit=1, tag="orders"))
    assert [each.record.notification.content.tags for each in page.entries] == [("orders",)]
    assert await listed(bench, tag="orders", before=page.before) == [first]
    assert await listed(bench, tag="order") == []
    assert await listed(bench, user_id=UserId("bob"), tag="orders") == []
    await bench.store.feed.mark(order(bench, Mark.ARCHIVED, third))
    assert (await listed(bench, tag="orders"), await listed(bench, Folder.ARCHIVE, tag="orders")) == ([first], [third])
    await bench.store.feed.mark(order(bench, Mark.DELETED, first))
    assert await listed(bench, tag="orders", types=()) == []
    await bench.store.feed.erase(APP, ANN)
    assert await listed(bench, Folder.ARCHIVE, tag="orders") == []


async def test_news_are_what_came_after_a_place_oldest_first(bench: Bench) -> None:
    made = await brought(bench, 4)
    await brought(bench, 1, user="bob")
    await bench.store.feed.mark(order(bench, Mark.DELETED, made[2].id))
    queries = [NewsQuery(APP, ANN, 1), NewsQuery(APP, UserId("bob"), 1), NewsQuery(APP, ANN, 0)]
    found = await bench.store.feed.news(queries, 2)
    ids = [[each.record.notification.id for each in entries] for entries in found]
    assert ids == [[made[1].id, made[3].id], [], [made[0].id, made[1].id]]
    shown = await bench.store.feed.entries([made[3].id, made[2].id, new_id(bench.now)])
    assert [(each.record.notification.id, each.place) for each in shown] == [(made[3].id, 4)]


async def test_what_is_unread_is_counted_with_what_of_a_list_has_come(bench: Bench) -> None:
    """What was read or put away since has come, too; what was only marked has not."""
    first, second, _ = await brought(bench, 3)
    await brought(bench, 1, user="bob")
    coming = await bench.accepted()
    await bench.store.feed.mark(marking(coming, Mark.UNREAD, bench.now))
    await bench.store.feed.mark(order(bench, Mark.READ, first.id))
    await bench.store.feed.mark(order(bench, Mark.DELETED, second.id))
    asked = frozenset({first.id, second.id, coming.id})
    queries = [UnreadQuery(APP, ANN, asked), UnreadQuery(APP, UserId("bob")), UnreadQuery(OTHER_APP, ANN)]
    assert await bench.store.feed.unread(queries) == [
        Unread(1, frozenset({first.id, second.id})),
        Unread(1),
        Unread(),
    ]


async def test_a_feed_that_is_erased_is_empty(bench: Bench) -> None:
    await brought(bench, 2)
    await brought(bench, 1, user="bob")
    await bench.store.feed.erase(APP, ANN)
    assert (await listed(bench), await count(bench), await count(bench, "bob")) == (
        [],
        FeedCounts(),
        FeedCounts(1, 1),
    )


async def test_each_change_of_a_feed_gives_it_a_stamp_that_it_never_had(bench: Bench) -> None:
    feed = bench.store.feed
    assert await feed.stamp(APP, ANN) is None
    (made,) = await brought(bench)
    seen = [await feed.stamp(APP, ANN)]
    await brought(bench, 1, user="bob")
    assert await feed.stamp(APP, ANN) == seen[0]
    for mark in Mark:
        await feed.mark(order(bench, mark, made.id))
        seen.append(await feed.stamp(APP, ANN))
    await feed.erase(APP, ANN)
    assert await feed.stamp(APP, ANN) is None
    await brought(bench)
    seen.append(await feed.stamp(APP, ANN))
    assert None not in seen and len(set(seen)) == len(Mark) + 2
