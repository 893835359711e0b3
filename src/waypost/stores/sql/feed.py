"""The feeds of users on SQL: a row for each notification that is in one, or that its reader marked.

The content stays where it is stored. A row without a place is in no feed: somebody marked it through the user API, or
in the log stack before it came. A user's rows lie together, so counting them is one short scan, and never drifts. What
is kept elsewhere of a feed is true as long as its stamp is the one that it was read under.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.time import Instant
from waypost.ports.clock import Clock
from waypost.ports.feed import (
    Entry,
    FeedCounts,
    FeedPage,
    FeedQuery,
    Mark,
    MarkedEntry,
    Marking,
    NewEntry,
    NewsQuery,
    Shown,
    Step,
    Unread,
    UnreadQuery,
)
from waypost.stores.sql import feed_reading
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.notification_reads import NOTE
from waypost.stores.sql.reading import Look
from waypost.stores.sql.rows import WITH_CONTENT, content_of, select_in
from waypost.stores.sql.transaction import OperationKind, Transaction

TABLE: Final = AddedTable(
    "feed_entry",
    "CREATE TABLE IF NOT EXISTS feed_entry"
    " (app {text} NOT NULL, user_id {text} NOT NULL, notification_id {blob} NOT NULL, n {number}, place {number},"
    " shown_at {number}, seen_at {number}, read_at {number}, archived_at {number}, hidden_at {number},"
    " PRIMARY KEY (app, user_id, notification_id), UNIQUE (notification_id), UNIQUE (app, user_id, place)){layout}",
    of_notification=True,
)

TAGS: Final = AddedTable(
    "feed_tag",
    "CREATE TABLE IF NOT EXISTS feed_tag"
    " (app {text} NOT NULL, user_id {text} NOT NULL, tag {text} NOT NULL, place {number} NOT NULL,"
    " notification_id {blob} NOT NULL, PRIMARY KEY (app, user_id, tag, place), UNIQUE (notification_id, tag)){layout}",
    of_notification=True,
)
"""The entries of a feed by each of their tags, newest last."""

STAMPS: Final = AddedTable(
    "feed_stamp",
    "CREATE TABLE IF NOT EXISTS feed_stamp (app {text} NOT NULL, user_id {text} NOT NULL, stamp {number} NOT NULL,"
    " PRIMARY KEY (app, user_id)){layout}",
)
"""A number of each feed, another one after each commit that changed it."""

_STAMP: Final = (
    "INSERT INTO feed_stamp (app, user_id, stamp) VALUES (?, ?, ?)"
    " ON CONFLICT (app, user_id) DO UPDATE SET stamp = excluded.stamp"
)
_LOCK_STAMP: Final = """\
INSERT INTO feed_stamp (app, user_id, stamp) VALUES (?, ?, 0)
ON CONFLICT (app, user_id) DO UPDATE SET stamp = feed_stamp.stamp
"""
"""It leaves the stamp as it is; 0 stands for none."""
_STAMP_OF: Final = "SELECT stamp FROM feed_stamp WHERE app = ? AND user_id = ?"
_FORGET_STAMP: Final = "DELETE FROM feed_stamp WHERE app = ? AND user_id = ?"

_ADD: Final = """\
INSERT INTO feed_entry (app, user_id, notification_id, n, place, shown_at)
SELECT app, user_id, id, ?, ?, ? FROM notification WHERE id = ? AND user_id = ?
ON CONFLICT (notification_id) DO UPDATE SET n = excluded.n, place = excluded.place, shown_at = excluded.shown_at
WHERE feed_entry.place IS NULL
"""
_BODIES: Final = f"SELECT notification.id, body FROM {WITH_CONTENT} WHERE notification.id IN ({{keys}})"  # noqa: S608 - a join of ours
_ADD_TAG: Final = """\
INSERT INTO feed_tag (app, user_id, tag, place, notification_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_VOUCH: Final = "INSERT INTO feed_entry (app, user_id, notification_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_SETS: Final = {
    Mark.SEEN: ("seen_at = ?", "seen_at IS NULL"),
    Mark.READ: ("read_at = ?, seen_at = coalesce(seen_at, ?)", "read_at IS NULL"),
    Mark.UNREAD: ("read_at = NULL", "read_at IS NOT NULL"),
    Mark.ARCHIVED: (
        "archived_at = ?, read_at = coalesce(read_at, ?), seen_at = coalesce(seen_at, ?)",
        "archived_at IS NULL",
    ),
    Mark.UNARCHIVED: ("archived_at = NULL", "archived_at IS NOT NULL"),
    Mark.DELETED: ("hidden_at = ?", "hidden_at IS NULL"),
    Mark.RESTORED: ("hidden_at = NULL", "hidden_at IS NOT NULL"),
}
"""What each mark sets, and of which rows; a parameter is the time."""
TAGS_KEY: Final = b"tags"
"""It is in every stored content that has tags: others need not be read."""
_ONE: Final = "notification_id = ?"
_UP_TO: Final = (
    "place <= (SELECT place FROM feed_entry WHERE app = ? AND user_id = ? AND notification_id = ?)"
    " AND hidden_at IS NULL AND archived_at IS NULL"
)
_MARK: Final = "UPDATE feed_entry SET {sets} WHERE app = ? AND user_id = ? AND {which} AND {where} RETURNING {row}"
_MARKED: Final = "notification_id, n"
_MEANT: Final = "SELECT {row} FROM feed_entry WHERE app = ? AND user_id = ? AND {which} AND {where}"

_ERASE: Final = "DELETE FROM feed_entry WHERE app = ? AND user_id = ?"
_ERASE_TAGS: Final = "DELETE FROM feed_tag WHERE app = ? AND user_id = ?"


class SqlFeed:
    """See ports.feed.Feed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, entries: Sequence[NewEntry]) -> list[NewEntry]:
        """See Feed."""
        if not entries:
            return []
        added: list[NewEntry]
        added, _ = await self._database.commits.submit(_CHANGING, _adding(entries), rows=len(entries))
        return added

    async def add_by_steps(self, entries: Sequence[NewEntry]) -> tuple[list[NewEntry], list[Step]]:
        """See FollowedFeed."""
        if not entries:
            return [], []
        change = _adding(entries)._replace(is_followed=True)
        return await self._database.commits.submit(_CHANGING, change, rows=len(entries))

    async def mark(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        marked: list[MarkedEntry]
        marked, _ = await self._database.commits.submit(_CHANGING, _marking(marking), rows=max(1, len(marking.ids)))
        return marked

    async def mark_by_steps(self, marking: Marking) -> tuple[list[MarkedEntry], list[Step]]:
        """See FollowedFeed."""
        change = _marking(marking)._replace(is_followed=True)
        return await self._database.commits.submit(_CHANGING, change, rows=max(1, len(marking.ids)))

    async def shown(self, ids: Sequence[NotificationId]) -> Shown:
        """See FollowedFeed."""
        look = Look(self._clock.now(), None)
        return await self._database.read(lambda connection: feed_reading.shown(connection, ids, look))

    async def walk(self, app: AppId, user_id: UserId, before: int | None, n: int) -> list[Entry]:
        """See FollowedFeed."""
        look = Look(self._clock.now(), None)
        last = feed_reading.LAST_PLACE if before is None else before
        return await self._database.read(
            lambda connection: feed_reading.walk(connection, (app, user_id), last, n, look)
        )

    async def meant(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        return await self._database.read(lambda connection: _meant(connection, marking))

    async def page(self, query: FeedQuery) -> FeedPage:
        """See Feed."""
        look = Look(self._clock.now(), None)
        return await self._database.read(lambda connection: feed_reading.page(connection, query, look))

    async def news(self, queries: Sequence[NewsQuery], limit: int) -> list[list[Entry]]:
        """See Feed."""
        look = Look(self._clock.now(), None)
        return await self._database.read(lambda connection: feed_reading.news(connection, queries, limit, look))

    async def entries(self, ids: Sequence[NotificationId]) -> list[Entry]:
        """See Feed."""
        look = Look(self._clock.now(), None)
        return await self._database.read(
            lambda connection: feed_reading.entries_of(
                connection, list(select_in(connection, feed_reading.THESE, ids)), look
            )
        )

    async def counts(self, users: Sequence[tuple[AppId, UserId]]) -> list[FeedCounts]:
        """See Feed."""
        return await self._database.read(
            lambda connection: [FeedCounts(*connection.execute(feed_reading.COUNT, user).fetchone()) for user in users]
        )

    async def unread(self, queries: Sequence[UnreadQuery]) -> list[Unread]:
        """See Feed."""
        return await self._database.read_to_route(
            lambda connection: [feed_reading.unread(connection, query) for query in queries]
        )

    async def stamp(self, app: AppId, user_id: UserId) -> int | None:
        """See Feed."""
        row = await self._database.read(lambda connection: connection.execute(_STAMP_OF, (app, user_id)).fetchone())
        return None if row is None else int(row[0])

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """See Feed."""
        user = app, user_id
        await self._database.commits.submit(_CHANGING, _Change([user], lambda connection: _erase(connection, user)))


class _Change(NamedTuple):
    """A change of the feeds of *users*."""

    users: Sequence[tuple[AppId, UserId]]
    make: Callable[[Connection], Any]
    is_followed: bool = False
    """Whether somebody copies it, and so must know which stamp it came after."""


def _adding(entries: Sequence[NewEntry]) -> _Change:
    users = [(each.app, each.user_id) for each in entries]
    return _Change(users, lambda connection: _add(connection, entries))


def _marking(marking: Marking) -> _Change:
    return _Change([(marking.app, marking.user_id)], lambda connection: _mark(connection, marking))


def _change(transaction: Transaction, changes: Sequence[_Change]) -> list[tuple[Any, list[Step]]]:
    """Give each feed that is changed another stamp, then change them.

    Every transaction comes to users in one order, and has their feeds to itself from then on. So none waits in a
    circle, in whatever order entries of one user are written. A change that is followed has a stamp of its own.
    """
    connection, stamp = transaction.connection, secrets.randbits(63)
    users = sorted({user for change in changes for user in change.users})
    if not any(change.is_followed for change in changes):
        connection.executemany(_STAMP, [(*user, stamp) for user in users])
        return [(change.make(connection), []) for change in changes]
    connection.executemany(_LOCK_STAMP, users)
    steps = [[_step(connection, *user) for user in sorted(set(change.users))] for change in changes]
    return [(change.make(connection), taken) for change, taken in zip(changes, steps, strict=True)]


def _step(connection: Connection, app: AppId, user_id: UserId) -> Step:
    """Give a feed that this transaction has locked another stamp."""
    (before,), after = connection.execute(_STAMP_OF, (app, user_id)).fetchone(), secrets.randbits(63)
    connection.execute(_STAMP, (app, user_id, after))
    return Step(app, user_id, before or None, after)


def _add(connection: Connection, entries: Sequence[NewEntry]) -> list[NewEntry]:
    added = {each.notification_id: each for each in entries if _is_added(connection, each)}
    for notification_id, body in select_in(connection, _BODIES, list(added)):
        if body is not None and TAGS_KEY in body:
            each = added[notification_id]
            rows = [(each.app, each.user_id, tag, each.place, notification_id) for tag in content_of(body).tags]
            connection.executemany(_ADD_TAG, rows)
    return list(added.values())


def _is_added(connection: Connection, entry: NewEntry) -> bool:
    """Add *entry*, unless its user was erased meanwhile."""
    values = entry.n, entry.place, entry.at, entry.notification_id, entry.user_id
    return connection.execute(_ADD, values).rowcount > 0


def _mark(connection: Connection, marking: Marking) -> list[MarkedEntry]:
    sets, where = _SETS[marking.mark]
    if marking.vouched:
        for notification_id in marking.ids:
            connection.execute(_VOUCH, (marking.app, marking.user_id, notification_id))
    change = _MARK.format(sets=sets, which="{which}", where=where, row=_MARKED)
    changed = _of_each(connection, marking, change, (marking.at,) * sets.count("?"))
    if marking.is_told:
        read = marking.app, marking.user_id
        connection.executemany(NOTE, [(*read, each.notification_id, marking.at, marking.device_id) for each in changed])
    return changed


def _meant(connection: Connection, marking: Marking) -> list[MarkedEntry]:
    _, where = _SETS[marking.mark]
    return _of_each(connection, marking, _MEANT.format(which="{which}", where=where, row=_MARKED), ())


def _of_each(connection: Connection, marking: Marking, statement: str, times: tuple[Instant, ...]) -> list[MarkedEntry]:
    """Run *statement* for the entries that *marking* names."""
    user = marking.app, marking.user_id
    rows: list[Row] = []
    if marking.until is not None:
        rows += connection.execute(statement.format(which=_UP_TO), (*times, *user, *user, marking.until)).fetchall()
    for notification_id in marking.ids:
        rows += connection.execute(statement.format(which=_ONE), (*times, *user, notification_id)).fetchall()
    return [MarkedEntry(NotificationId(row[0]), row[1]) for row in rows]


def _erase(connection: Connection, user: tuple[AppId, UserId]) -> None:
    connection.execute(_ERASE, user)
    connection.execute(_ERASE_TAGS, user)
    connection.execute(_FORGET_STAMP, user)


_CHANGING: Final = OperationKind("change_feeds", _change, durable=True)
