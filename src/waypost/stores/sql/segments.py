"""Segments on SQL: filters by name, and counts of whom one chooses.

segment    one row each, with its filter as JSON
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.segment import Filter
from waypost.domain.time import Instant
from waypost.ports.segments import Counted, Segment
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.segment_filter import Asked
from waypost.stores.sql.segment_walk import matching_page
from waypost.stores.sql.transaction import OperationKind, Transaction

SEGMENT: Final = AddedTable(
    "segment",
    "CREATE TABLE IF NOT EXISTS segment"
    " (app {text} NOT NULL, name {text} NOT NULL, filter {text} NOT NULL, changed_at {number} NOT NULL,"
    " PRIMARY KEY (app, name)){layout}",
)
COUNT_PAGE: Final = 20_000
"""The users of one page of a count: nobody's snapshot is held for longer than one takes."""

_HAS: Final = "SELECT 1 FROM segment WHERE app = ? AND name = ?"
_PUT: Final = """\
INSERT INTO segment (app, name, filter, changed_at) VALUES (?, ?, ?, ?)
ON CONFLICT (app, name) DO UPDATE SET filter = excluded.filter, changed_at = excluded.changed_at
"""
_FIND: Final = "SELECT name, filter, changed_at FROM segment WHERE app = ? AND name = ?"
_LIST: Final = "SELECT name, filter, changed_at FROM segment WHERE app = ? AND name > ? ORDER BY name LIMIT ?"
_REMOVE: Final = "DELETE FROM segment WHERE app = ? AND name = ?"

_encode: Final = msgspec.json.Encoder().encode
_filter: Final = msgspec.json.Decoder(Filter).decode


class SqlSegments:
    """See ports.segments.Segments."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, app: AppId, name: str, filter_: Filter, at: Instant) -> bool:
        """See Segments."""
        row = app, name, _encode(filter_).decode(), at
        return await self._database.commits.submit(_PUTTING, row)

    async def find(self, app: AppId, name: str) -> Segment | None:
        """See Segments."""
        row = await self._database.read(lambda connection: connection.execute(_FIND, (app, name)).fetchone())
        return None if row is None else _segment(*row)

    async def page(self, app: AppId, after: str, n: int) -> list[Segment]:
        """See Segments."""
        rows = await self._database.read(lambda connection: connection.execute(_LIST, (app, after, n)).fetchall())
        return [_segment(*row) for row in rows]

    async def remove(self, app: AppId, name: str) -> bool:
        """See Segments."""
        return await self._database.commits.submit(_REMOVING, (app, name))

    async def count(self, app: AppId, filter_: Filter, now: Instant, examples: int) -> Counted:
        """See Segments."""
        counted = Counted(0, 0, ())
        after: str | None = ""
        while after is not None:
            wanted = examples - len(counted.examples)
            page = await self._database.read(partial(_count_page, app, filter_, now, after, wanted))
            counted = Counted(
                counted.count + page.matches,
                counted.looked_at + page.looked_at,
                counted.examples + page.examples,
            )
            after = page.last
        return counted

    async def first(self, app: AppId, filter_: Filter, now: Instant, n: int) -> Sequence[UserId]:
        """See Segments."""
        found: tuple[UserId, ...] = ()
        after: str | None = ""
        while after is not None and len(found) < n:
            page = await self._database.read(partial(_count_page, app, filter_, now, after, n - len(found)))
            found, after = found + page.examples, page.last
        return found


class _Page(Struct, frozen=True):
    matches: int
    looked_at: int
    examples: tuple[UserId, ...]
    last: str | None
    """The last user of a page that is full; None at the end."""


def _count_page(app: AppId, filter_: Filter, now: Instant, after: str, examples: int, connection: Connection) -> _Page:
    table, bound = matching_page(filter_, Asked(app, now, connection.dialect), after, COUNT_PAGE)
    counted = f"SELECT count(*), CAST(coalesce(sum(matches), 0) AS BIGINT), max(user_id) FROM ({table}) AS page"  # noqa: S608 - made of constants
    looked_at, matches, last = connection.execute(counted, bound).fetchone()
    found: Sequence[tuple[Any, ...]] = ()
    if matches and examples:
        first = f"SELECT user_id FROM ({table}) AS page WHERE matches = 1 ORDER BY user_id LIMIT ?"  # noqa: S608 - as above
        found = connection.execute(first, [*bound, examples]).fetchall()
    return _Page(matches, looked_at, tuple(user for (user,) in found), last if looked_at == COUNT_PAGE else None)


def _segment(name: str, filter_: str, changed_at: Instant) -> Segment:
    return Segment(name, _filter(filter_), changed_at)


def _put(transaction: Transaction, rows: Sequence[tuple[AppId, str, str, Instant]]) -> list[bool]:
    return [_put_one(transaction.connection, row) for row in rows]


def _put_one(connection: Connection, row: tuple[AppId, str, str, Instant]) -> bool:
    is_new = connection.execute(_HAS, row[:2]).fetchone() is None
    connection.execute(_PUT, row)
    return is_new


def _remove(transaction: Transaction, keys: Sequence[tuple[AppId, str]]) -> list[bool]:
    return [transaction.connection.execute(_REMOVE, key).rowcount > 0 for key in keys]


_PUTTING = OperationKind("put_segment", _put, durable=True)
_REMOVING = OperationKind("remove_segment", _remove, durable=True)
