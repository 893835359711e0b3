"""Reading the feeds of users on SQL: pages, news and counts, each a scan of one user's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.ports.feed import Entry, FeedPage, FeedQuery, Folder, NewsQuery, Shown, Unread, UnreadQuery
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.reading import Look, records
from waypost.stores.sql.rows import select_in

_ENTRY: Final = "notification_id, place, shown_at, seen_at, read_at, archived_at"
_ENTRY_OF_TABLE: Final = "feed_entry." + _ENTRY.replace(", ", ", feed_entry.")
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
_PAGE_OF_TAG: Final = """\
SELECT {entry} FROM feed_tag JOIN feed_entry ON feed_entry.notification_id = feed_tag.notification_id
WHERE feed_tag.app = ? AND feed_tag.user_id = ? AND tag = ? AND feed_tag.place < ? AND hidden_at IS NULL AND {folder}
ORDER BY feed_tag.place DESC LIMIT ?
"""
_WALK: Final = f"""\
SELECT {_ENTRY} FROM feed_entry
WHERE app = ? AND user_id = ? AND place < ? AND hidden_at IS NULL ORDER BY place DESC LIMIT ?
"""  # noqa: S608 - columns and conditions of ours
_SHOWN: Final = f"""\
SELECT {_ENTRY}, hidden_at FROM feed_entry WHERE notification_id IN ({{keys}}) AND place IS NOT NULL
"""  # noqa: S608 - as above
_NEWS: Final = f"""\
SELECT {_ENTRY} FROM feed_entry WHERE app = ? AND user_id = ? AND place > ? AND {_INBOX} ORDER BY place LIMIT ?
"""  # noqa: S608 - columns and conditions of ours
THESE: Final = f"""\
SELECT {_ENTRY} FROM feed_entry WHERE notification_id IN ({{keys}}) AND place IS NOT NULL AND {_INBOX}
"""  # noqa: S608 - as above
COUNT: Final = f"""\
SELECT count(CASE WHEN {_INBOX} AND read_at IS NULL THEN 1 END),
count(CASE WHEN {_INBOX} AND seen_at IS NULL THEN 1 END), coalesce(max(place), 0)
FROM feed_entry WHERE app = ? AND user_id = ? AND place IS NOT NULL
"""  # noqa: S608 - as above
_PLACES: Final = "SELECT notification_id, place FROM feed_entry WHERE notification_id IN ({keys}) AND place IS NOT NULL"
LAST_PLACE: Final = 2**63 - 1
_ROWS_A_ROUND: Final = 100
"""The least rows read at a time where entries of some types are looked for: most may be of others."""


def page(connection: Connection, query: FeedQuery, look: Look) -> FeedPage:
    """Read a page; see Feed."""
    statement = _PAGE if query.tag is None else _PAGE_OF_TAG
    statement = statement.format(entry=_ENTRY_OF_TABLE, folder=_FOLDERS[query.folder])
    of = (query.app, query.user_id) if query.tag is None else (query.app, query.user_id, query.tag)
    entries: list[Entry] = []
    before = LAST_PLACE if query.before is None else query.before
    at_once = max(query.limit + 1, _ROWS_A_ROUND if query.types else 0)
    while True:
        rows = connection.execute(statement, (*of, before, at_once)).fetchall()
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


def news(connection: Connection, queries: Sequence[NewsQuery], limit: int, look: Look) -> list[list[Entry]]:
    """Read what came for each of *queries*, at most *limit* entries; see Feed."""
    asked = [(query.app, query.user_id, query.after, limit) for query in queries]
    rows = [connection.execute(_NEWS, bound).fetchall() for bound in asked]
    found = entries_of(connection, [row for each in rows for row in each], look)
    entries = {each.record.notification.id: each for each in found}
    return [[entries[row[0]] for row in each if row[0] in entries] for each in rows]


def entries_of(connection: Connection, rows: Sequence[Row], look: Look) -> list[Entry]:
    """Make the entries of *rows* whose notifications are still there."""
    found = records(connection, [row[0] for row in rows], look)
    return [Entry(found[row[0]], *row[1:]) for row in rows if row[0] in found]


def walk(connection: Connection, user: tuple[AppId, UserId], before: int, n: int, look: Look) -> list[Entry]:
    """Read the next *n* entries of all folders; see FollowedFeed."""
    entries: list[Entry] = []
    while rows := connection.execute(_WALK, (*user, before, n - len(entries))).fetchall():
        entries += entries_of(connection, rows, look)
        before = rows[-1][1]
    return entries


def shown(connection: Connection, ids: Sequence[NotificationId], look: Look) -> Shown:
    """Read entries of all folders, and what is deleted; see FollowedFeed."""
    rows = list(select_in(connection, _SHOWN, ids))
    shown = [row[:-1] for row in rows if row[-1] is None]
    return Shown(tuple(entries_of(connection, shown, look)), tuple([row[1] for row in rows if row[-1] is not None]))


def unread(connection: Connection, query: UnreadQuery) -> Unread:
    """Count first: what came afterwards has a higher place than any that was counted."""
    unread, _, newest = connection.execute(COUNT, (query.app, query.user_id)).fetchone()
    places = select_in(connection, _PLACES, sorted(query.ids)) if query.ids else ()
    return Unread(unread, frozenset(NotificationId(one) for one, place in places if place <= newest))
