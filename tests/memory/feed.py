"""The feeds of users, in memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from copy import copy

import msgspec
from msgspec import Struct

from tests.memory.store import MemoryStore
from tests.memory.views import MemoryViews
from waypost.domain.content import Content
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.feed import (
    Entry,
    FeedCounts,
    FeedPage,
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


class FeedRow(Struct):
    """A row: an entry of a feed, or marks alone."""

    app: AppId
    user_id: UserId
    n: int | None = None
    place: int | None = None
    shown_at: Instant | None = None
    seen_at: Instant | None = None
    read_at: Instant | None = None
    archived_at: Instant | None = None
    hidden_at: Instant | None = None


class MemoryFeed:
    """See ports.feed.Feed."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._views = MemoryViews(store, clock)
        self._stamps: dict[tuple[AppId, UserId], int] = {}
        self._drawn = itertools.count()

    async def add(self, entries: Sequence[NewEntry]) -> list[NewEntry]:
        """See Feed."""
        self._stamps |= {(each.app, each.user_id): next(self._drawn) for each in entries}
        return [each for each in entries if self._is_added(each)]

    async def mark(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        self._stamps[marking.app, marking.user_id] = next(self._drawn)
        if marking.vouched:
            for each in marking.ids:
                self._store.feed.setdefault(each, FeedRow(marking.app, marking.user_id))
        return [MarkedEntry(one, row.n) for one, row in self._named(marking) if _changed(row, marking.mark, marking.at)]

    async def meant(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        return [
            MarkedEntry(one, row.n)
            for one, row in self._named(marking)
            if _changed(copy(row), marking.mark, marking.at)
        ]

    def _named(self, marking: Marking) -> list[tuple[NotificationId, FeedRow]]:
        of_user = self._of(marking.app, marking.user_id)
        return [(one, row) for one, row in of_user if _is_meant(one, row, self, marking)]

    async def page(self, query: FeedQuery) -> FeedPage:
        """See Feed."""
        rows = [(row.place or 0, one, row) for one, row in self._of(query.app, query.user_id) if _is_in(row, query)]
        entries: list[Entry] = []
        for place, one, row in sorted(rows, reverse=True):
            detail = await self._views.detail(query.app, one)
            if detail is None or not _is_about(detail.record.notification.content, query):
                continue
            if len(entries) == query.limit:
                return FeedPage(tuple(entries), entries[-1].place)
            shown_at = row.shown_at
            assert shown_at is not None
            entries.append(Entry(detail.record, place, shown_at, row.seen_at, row.read_at, row.archived_at))
        return FeedPage(tuple(entries))

    async def news(self, queries: Sequence[NewsQuery], limit: int) -> list[list[Entry]]:
        """See Feed."""
        whole = [await self.page(FeedQuery(query.app, query.user_id, limit=1_000_000)) for query in queries]
        return [
            [each for each in reversed(page.entries) if each.place > query.after][:limit]
            for page, query in zip(whole, queries, strict=True)
        ]

    async def entries(self, ids: Sequence[NotificationId]) -> list[Entry]:
        """See Feed."""
        users = {(row.app, row.user_id) for one in ids if (row := self._store.feed.get(one)) is not None}
        pages = [await self.page(FeedQuery(*user, limit=1_000_000)) for user in users]
        return [each for page in pages for each in page.entries if each.record.notification.id in ids]

    async def counts(self, users: Sequence[tuple[AppId, UserId]]) -> list[FeedCounts]:
        """See Feed."""
        return [self._counts(*user) for user in users]

    async def unread(self, queries: Sequence[UnreadQuery]) -> list[Unread]:
        """See Feed."""
        return [
            Unread(
                self._counts(query.app, query.user_id).unread,
                frozenset(one for one in query.ids if self.place_of(one) is not None),
            )
            for query in queries
        ]

    async def stamp(self, app: AppId, user_id: UserId) -> int | None:
        """See Feed."""
        return self._stamps.get((app, user_id))

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """See Feed."""
        self._stamps.pop((app, user_id), None)
        for one, _ in list(self._of(app, user_id)):
            del self._store.feed[one]

    def _counts(self, app: AppId, user_id: UserId) -> FeedCounts:
        rows = [row for _, row in self._of(app, user_id)]
        inbox = [row for row in rows if _is_shown(row) and row.archived_at is None]
        newest = max((row.place or 0 for row in rows), default=0)
        return FeedCounts(sum(row.read_at is None for row in inbox), sum(row.seen_at is None for row in inbox), newest)

    def place_of(self, notification_id: NotificationId) -> int | None:
        """The place of an entry; None where there is none."""
        row = self._store.feed.get(notification_id)
        return None if row is None else row.place

    def _is_added(self, entry: NewEntry) -> bool:
        stored = self._store.rows.get(entry.notification_id)
        if stored is None or stored.notification.user_id != entry.user_id:
            return False
        row = self._store.feed.setdefault(entry.notification_id, FeedRow(entry.app, entry.user_id))
        if row.place is not None:
            return False
        row.n, row.place, row.shown_at = entry.n, entry.place, entry.at
        return True

    def _of(self, app: AppId, user_id: UserId) -> Iterator[tuple[NotificationId, FeedRow]]:
        return ((one, row) for one, row in self._store.feed.items() if (row.app, row.user_id) == (app, user_id))


def _is_meant(one: NotificationId, row: FeedRow, feed: MemoryFeed, marking: Marking) -> bool:
    if marking.until is None:
        return one in marking.ids
    last = feed.place_of(marking.until)
    return last is not None and _is_shown(row) and row.archived_at is None and (row.place or 0) <= last


def _is_shown(row: FeedRow) -> bool:
    return row.place is not None and row.hidden_at is None


def _is_about(content: Content, query: FeedQuery) -> bool:
    is_of_type = not query.types or content.type in query.types
    return is_of_type and (query.tag is None or query.tag in content.tags)


def _is_in(row: FeedRow, query: FeedQuery) -> bool:
    if not _is_shown(row) or (query.before is not None and (row.place or 0) >= query.before):
        return False
    match query.folder:
        case Folder.INBOX:
            return row.archived_at is None
        case Folder.UNREAD:
            return row.archived_at is None and row.read_at is None
        case Folder.ARCHIVE:
            return row.archived_at is not None


def _changed(row: FeedRow, mark: Mark, at: Instant) -> bool:
    before = msgspec.structs.astuple(row)
    match mark:
        case Mark.SEEN:
            row.seen_at = row.seen_at or at
        case Mark.READ:
            if row.read_at is None:
                row.read_at, row.seen_at = at, row.seen_at or at
        case Mark.UNREAD:
            row.read_at = None
        case Mark.ARCHIVED:
            if row.archived_at is None:
                row.archived_at, row.read_at, row.seen_at = at, row.read_at or at, row.seen_at or at
        case Mark.UNARCHIVED:
            row.archived_at = None
        case Mark.DELETED:
            row.hidden_at = row.hidden_at or at
        case Mark.RESTORED:
            row.hidden_at = None
    return msgspec.structs.astuple(row) != before
