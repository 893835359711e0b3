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
    Folder,
    Mark,
    MarkedEntry,
    Marking,
    NewEntry,
    NewsQuery,
    Unread,
    UnreadQuery,
)
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.notification_reads import NOTE
from waypost.stores.sql.reading import Look, records
from waypost.stores.sql.rows import select_in
from waypost.stores.sql.transaction import OperationKind, Transaction

TABLE: Final = AddedTable(
    "feed_entry",
    "CREATE TABLE IF NOT EXISTS feed_entry"
    " (app {text} NOT NULL, user_id {text} NOT NULL, notification_id {blob} NOT NULL, n {number}, place {number},"
    " shown_at {number}, seen_at {number}, read_at {number}, archived_at {number}, hidden_at {number},"
    " PRIMARY KEY (app, user_id, notification_id), UNIQUE (notification_id), UNIQUE (app, user_id, place)){layout}",
    of_notification=True,
)

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
_STAMP_OF: Final = "SELECT stamp FROM feed_stamp WHERE app = ? AND user_id = ?"
_FORGET_STAMP: Final = "DELETE FROM feed_stamp WHERE app = ? AND user_id = ?"

_ADD: Final = """\
INSERT INTO feed_entry (app, user_id, notification_id, n, place, shown_at)
SELECT app, user_id, id, ?, ?, ? FROM notification WHERE id = ? AND user_id = ?
ON CONFLICT (notification_id) DO UPDATE SET n = excluded.n, place = excluded.place, shown_at = excluded.shown_at
WHERE feed_entry.place IS NULL
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
_ONE: Final = "notification_id = ?"
_UP_TO: Final = (
    "place <= (SELECT place FROM feed_entry WHERE app = ? AND user_id = ? AND notification_id = ?)"
    " AND hidden_at IS NULL AND archived_at IS NULL"
)
_MARK: Final = "UPDATE feed_entry SET {sets} WHERE app = ? AND user_id = ? AND {which} AND {where} RETURNING {row}"
_MARKED: Final = "notification_id, n"
_MEANT: Final = "SELECT {row} FROM feed_entry WHERE app = ? AND user_id = ? AND {which} AND {where}"

_ENTRY: Final = "notification_id, place, shown_at, seen_at, read_at, archived_at"
_INBOX: Final = "hidden_at IS NULL AND archived_at IS NULL"
_FOLDERS: Final = {
    Folder.INBOX: "archived_at IS NULL",
    Folder.UNREAD: "archived_at IS NULL AND read_at IS NULL",
    Folder.ARCHIVE: "archived_at IS NOT NULL",
}
_PAGE: Final = """\
SELECT {entry} FROM feed_entry
WHERE app = ? AND user_id = ? AND place < ? AND hidden_at IS NULL AND {folder} ORDER BY place DESC LIMIT ?
"""
_NEWS: Final = f"""\
SELECT {_ENTRY} FROM feed_entry WHERE app = ? AND user_id = ? AND place > ? AND {_INBOX} ORDER BY place LIMIT ?
"""  # noqa: S608 - columns and conditions of ours
_THESE: Final = f"""\
SELECT {_ENTRY} FROM feed_entry WHERE notification_id IN ({{keys}}) AND place IS NOT NULL AND {_INBOX}
"""  # noqa: S608 - as above
_COUNT: Final = f"""\
SELECT count(CASE WHEN {_INBOX} AND read_at IS NULL THEN 1 END),
count(CASE WHEN {_INBOX} AND seen_at IS NULL THEN 1 END), coalesce(max(place), 0)
FROM feed_entry WHERE app = ? AND user_id = ? AND place IS NOT NULL
"""  # noqa: S608 - as above
_PLACES: Final = "SELECT notification_id, place FROM feed_entry WHERE notification_id IN ({keys}) AND place IS NOT NULL"
_ERASE: Final = "DELETE FROM feed_entry WHERE app = ? AND user_id = ?"
_LAST_PLACE: Final = 2**63 - 1
_ROWS_A_ROUND: Final = 100
"""The least rows read at a time where entries of some types are looked for: most may be of others."""


class SqlFeed:
    """See ports.feed.Feed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, entries: Sequence[NewEntry]) -> list[NewEntry]:
        """See Feed."""
        if not entries:
            return []
        users = [(each.app, each.user_id) for each in entries]
        change = _Change(users, lambda connection: [each for each in entries if _is_added(connection, each)])
        added: list[NewEntry] = await self._database.commits.submit(_CHANGING, change, rows=len(entries))
        return added

    async def mark(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        change = _Change([(marking.app, marking.user_id)], lambda connection: _mark(connection, marking))
        marked: list[MarkedEntry] = await self._database.commits.submit(
            _CHANGING, change, rows=max(1, len(marking.ids))
        )
        return marked

    async def meant(self, marking: Marking) -> list[MarkedEntry]:
        """See Feed."""
        return await self._database.read(lambda connection: _meant(connection, marking))

    async def page(self, query: FeedQuery) -> FeedPage:
        """See Feed."""
        look = Look(self._clock.now(), None)
        return await self._database.read(lambda connection: _page(connection, query, look))

    async def news(self, queries: Sequence[NewsQuery], limit: int) -> list[list[Entry]]:
        """See Feed."""
        look = Look(self._clock.now(), None)
        return await self._database.read(lambda connection: _news(connection, queries, limit, look))

    async def entries(self, ids: Sequence[NotificationId]) -> list[Entry]:
        """See Feed."""
        look = Look(self._clock.now(), None)
        return await self._database.read(
            lambda connection: _entries(connection, list(select_in(connection, _THESE, ids)), look)
        )

    async def counts(self, users: Sequence[tuple[AppId, UserId]]) -> list[FeedCounts]:
        """See Feed."""
        return await self._database.read(
            lambda connection: [FeedCounts(*connection.execute(_COUNT, user).fetchone()) for user in users]
        )

    async def unread(self, queries: Sequence[UnreadQuery]) -> list[Unread]:
        """See Feed."""
        return await self._database.read_to_route(lambda connection: [_unread(connection, query) for query in queries])

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


def _change(transaction: Transaction, changes: Sequence[_Change]) -> list[Any]:
    """Give each feed that is changed another stamp, then change them.

    Every transaction comes to users in one order, and has their feeds to itself from then on. So none waits in a
    circle, in whatever order entries of one user are written.
    """
    connection, stamp = transaction.connection, secrets.randbits(63)
    users = sorted({user for change in changes for user in change.users})
    connection.executemany(_STAMP, [(*user, stamp) for user in users])
    return [change.make(connection) for change in changes]


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


def _page(connection: Connection, query: FeedQuery, look: Look) -> FeedPage:
    statement = _PAGE.format(entry=_ENTRY, folder=_FOLDERS[query.folder])
    entries: list[Entry] = []
    before = _LAST_PLACE if query.before is None else query.before
    at_once = max(query.limit + 1, _ROWS_A_ROUND if query.types else 0)
    while True:
        rows = connection.execute(statement, (query.app, query.user_id, before, at_once)).fetchall()
        found = records(connection, [row[0] for row in rows], look)
        for row in rows:
            if len(entries) == query.limit:
                return FeedPage(tuple(entries), entries[-1].place)
            record = found.get(row[0])
            if record is not None and (not query.types or record.notification.content.type in query.types):
                entries.append(Entry(record, *row[1:]))
        if len(rows) < at_once:
            return FeedPage(tuple(entries))
        before = rows[-1][1]


def _news(connection: Connection, queries: Sequence[NewsQuery], limit: int, look: Look) -> list[list[Entry]]:
    asked = [(query.app, query.user_id, query.after, limit) for query in queries]
    rows = [connection.execute(_NEWS, bound).fetchall() for bound in asked]
    found = _entries(connection, [row for each in rows for row in each], look)
    entries = {each.record.notification.id: each for each in found}
    return [[entries[row[0]] for row in each if row[0] in entries] for each in rows]


def _entries(connection: Connection, rows: Sequence[Row], look: Look) -> list[Entry]:
    found = records(connection, [row[0] for row in rows], look)
    return [Entry(found[row[0]], *row[1:]) for row in rows if row[0] in found]


def _unread(connection: Connection, query: UnreadQuery) -> Unread:
    """Count first: what came afterwards has a higher place than any that was counted."""
    unread, _, newest = connection.execute(_COUNT, (query.app, query.user_id)).fetchone()
    places = select_in(connection, _PLACES, sorted(query.ids)) if query.ids else ()
    return Unread(unread, frozenset(NotificationId(one) for one, place in places if place <= newest))


def _erase(connection: Connection, user: tuple[AppId, UserId]) -> None:
    connection.execute(_ERASE, user)
    connection.execute(_FORGET_STAMP, user)


_CHANGING: Final = OperationKind("change_feeds", _change, durable=True)
