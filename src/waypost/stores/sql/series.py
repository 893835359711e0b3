"""Series on SQL: their versions, which never change, and a row for each member.

series_version   (app, name, version) what it is, in ``body``
series_event     the events that versions ask for, so that all others cost one look
series_member    (app, name, user_id) where a member is, in ``body``; (due_at, …) what is due, soonest first
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial, reduce
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, UserId
from waypost.domain.series import Member, MemberState, Series, events_of, told
from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.rows import readable
from waypost.stores.sql.transaction import OperationKind, Transaction

VERSION: Final = AddedTable(
    "series_version",
    "CREATE TABLE IF NOT EXISTS series_version"
    " (app {text} NOT NULL, name {text} NOT NULL, version {number} NOT NULL, body {blob} NOT NULL,"
    " PRIMARY KEY (app, name, version)){layout}",
)
EVENT: Final = AddedTable(
    "series_event",
    "CREATE TABLE IF NOT EXISTS series_event"
    " (app {text} NOT NULL, event {text} NOT NULL, name {text} NOT NULL, PRIMARY KEY (app, event, name)){layout}",
)
MEMBER: Final = AddedTable(
    "series_member",
    "CREATE TABLE IF NOT EXISTS series_member"
    " (app {text} NOT NULL, name {text} NOT NULL, user_id {text} NOT NULL, state {text} NOT NULL, due_at {number},"
    " written {number} NOT NULL, changed_at {number} NOT NULL, body {blob} NOT NULL,"
    " PRIMARY KEY (app, name, user_id), UNIQUE (due_at, app, name, user_id),"
    " UNIQUE (app, user_id, name), UNIQUE (state, changed_at, app, name, user_id)){layout}",
)
_ADD_VERSION: Final = """\
INSERT INTO series_version (app, name, version, body) VALUES (?, ?, ?, ?) ON CONFLICT (app, name, version) DO NOTHING
"""
_ADD_EVENT: Final = """\
INSERT INTO series_event (app, event, name) VALUES (?, ?, ?) ON CONFLICT (app, event, name) DO NOTHING
"""
_LATEST: Final = "SELECT body FROM series_version WHERE app = ? AND name = ? ORDER BY version DESC LIMIT 1"
_VERSION: Final = "SELECT body FROM series_version WHERE app = ? AND name = ? AND version = ?"
_PAGE: Final = """\
SELECT body FROM series_version AS newest WHERE app = ? AND name > ?
AND version = (SELECT max(version) FROM series_version WHERE app = newest.app AND name = newest.name)
ORDER BY name LIMIT ?
"""
_COUNT: Final = """\
SELECT state, count(*) FROM (SELECT state FROM series_member WHERE app = ? AND name = ? LIMIT ?) AS found GROUP BY state
"""
_ADD_MEMBER: Final = """\
INSERT INTO series_member (state, due_at, written, changed_at, body, app, name, user_id)
SELECT ?, ?, ?, ?, ?, ?, ?, ?
WHERE EXISTS (SELECT 1 FROM series_version WHERE app = ? AND name = ? AND version = ?)
ON CONFLICT (app, name, user_id) DO NOTHING
"""
_REPLACE: Final = """\
UPDATE series_member SET state = ?, due_at = ?, written = ?, changed_at = ?, body = ?
WHERE app = ? AND name = ? AND user_id = ? AND written = ?
"""
_FIND: Final = "SELECT body FROM series_member WHERE app = ? AND name = ? AND user_id = ?"
_MEMBERS: Final = """\
SELECT body FROM series_member WHERE app = ? AND name = ? AND user_id > ? ORDER BY user_id LIMIT ?
"""
_NEXT_DUE: Final = "SELECT min(due_at) FROM series_member"
_DUE: Final = """\
SELECT body, due_at, app, name, user_id FROM series_member
WHERE due_at <= ? AND (due_at, app, name, user_id) > (?, ?, ?, ?)
ORDER BY due_at, app, name, user_id LIMIT ?
"""
_REMOVE: Final = (
    "DELETE FROM series_event WHERE app = ? AND name = ?",
    "DELETE FROM series_version WHERE app = ? AND name = ?",
)
_REMOVE_MEMBERS: Final = """\
DELETE FROM series_member WHERE (app, name, user_id) IN
(SELECT app, name, user_id FROM series_member WHERE app = ? AND name = ? LIMIT ?)
"""
_ERASE: Final = "DELETE FROM series_member WHERE app = ? AND user_id = ? AND changed_at <= ?"
_DROP: Final = (
    "DELETE FROM series_member WHERE (app, name, user_id) IN"
    " (SELECT app, name, user_id FROM series_member WHERE state IN ('done', 'exited') AND changed_at < ? LIMIT ?)"
)

_TRIES: Final = 10
REMOVED_PAGE: Final = 1_000
"""The members that one transaction removes with their series."""
COUNTED: Final = 100_000
"""The members of a series that are counted; more take too long to count for an answer."""

_series: Final = msgspec.msgpack.Decoder(Series).decode
_member: Final = msgspec.msgpack.Decoder(Member).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class UserEvent(Protocol):
    """An event of a user."""

    @property
    def app(self) -> AppId:
        """The app."""
        ...

    @property
    def user_id(self) -> UserId:
        """The user."""
        ...

    @property
    def name(self) -> str:
        """The event's name."""
        ...


class HeardEvent(Struct, frozen=True):
    """An event of a user, told by itself."""

    app: AppId
    user_id: UserId
    name: str


class SqlSeries:
    """The store of series and their members."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, series: Series) -> bool:
        """Add a version; False where somebody else added that one."""
        return await self._database.commits.submit(_ADDING, series)

    async def latest(self, app: AppId, name: str) -> Series | None:
        """Find the newest version of a series."""
        return await self._one(_LATEST, (app, name))

    async def version(self, app: AppId, name: str, version: int) -> Series | None:
        """Find one version of a series."""
        return await self._one(_VERSION, (app, name, version))

    async def page(self, app: AppId, after: str, n: int) -> list[Series]:
        """List the newest version of at most *n* series of an app, by name, after one."""
        rows = await self._rows(_PAGE, (app, after, n))
        return [_series(row[0]) for row in rows]

    async def counts(self, app: AppId, name: str) -> dict[MemberState, int]:
        """Count the members of a series by state, all together up to ``COUNTED``."""
        return {MemberState(state): n for state, n in await self._rows(_COUNT, (app, name, COUNTED))}

    async def remove(self, app: AppId, name: str) -> bool:
        """Remove a series with its members; False where there is none.

        Members go a page at a time, and the versions with the last of them: nobody is left behind without one, and
        who is interrupted removes it again.
        """
        while (removed := await self._database.commits.submit(_REMOVING, (app, name))) is None:
            pass
        return removed

    async def join(self, member: Member, now: Instant) -> bool:
        """Add a member; False where the user is or was one, or where the version is gone."""
        return await self._database.commits.submit(_JOINING, (member, now))

    async def replace(self, before: Member, after: Member, now: Instant) -> Member | None:
        """Write *after* in the place of *before*; None where somebody else wrote or removed it since that was read."""
        return await self._database.commits.submit(_REPLACING, (before, after, now))

    async def member(self, app: AppId, name: str, user_id: UserId) -> Member | None:
        """Find a member."""
        rows = await self._rows(_FIND, (app, name, user_id))
        return _member(rows[0][0]) if rows else None

    async def members(self, app: AppId, name: str, after: str, n: int) -> list[Member]:
        """List at most *n* members of a series, by user, after one."""
        return [_member(row[0]) for row in await self._rows(_MEMBERS, (app, name, after, n))]

    async def due(self, now: Instant, n: int) -> AsyncIterator[list[Member]]:
        """Yield members who are due or claimed, soonest first, in pages of at most *n*; see ``readable``."""
        place: Row = (0, "", "", "")
        while rows := await self._rows(_DUE, (now, *place, n)):
            place = rows[-1][1:]
            yield readable(_member, rows)

    async def next_due(self) -> Instant | None:
        """Find when the next one is due; None where none is."""
        ((at,),) = await self._rows(_NEXT_DUE, ())
        return None if at is None else Instant(at)

    async def exit_by_event(self, app: AppId, user_id: UserId, event: str) -> None:
        """Tell the user's series of an event; who does so in a transaction of their own calls ``hear`` there."""
        await self._database.commits.submit(_HEARING, HeardEvent(app, user_id, event))

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """Forget the user as a member, as they were until then."""
        await self._database.commits.submit(_ERASING, (app, user_id, until))

    async def drop(self, before: Instant, page: int) -> int:
        """Delete a page of members who are through, or left, since before a time; return how many it was."""
        return await self._database.commits.submit(_DROPPING, (before, page))

    async def _one(self, sql: str, bound: Row) -> Series | None:
        rows = await self._rows(sql, bound)
        return _series(rows[0][0]) if rows else None

    async def _rows(self, sql: str, bound: Row) -> list[Row]:
        return await self._database.read(lambda connection: connection.execute(sql, bound).fetchall())


def hear(transaction: Transaction, events: Sequence[UserEvent]) -> None:
    """Let members leave, or note what a condition may ask for, in the transaction that knows of *events*."""
    connection = transaction.connection
    for app in {each.app for each in events}:
        of_app = [each for each in events if each.app == app]
        wanted = _wanted(connection, app, {each.name for each in of_app})
        heard = [each for each in of_app if each.name in wanted]
        if heard:
            _tell(connection, app, heard, transaction.now)


def _wanted(connection: Connection, app: AppId, names: Iterable[str]) -> set[str]:
    asked = sorted(names)
    known = f"SELECT DISTINCT event FROM series_event WHERE app = ? AND event IN ({', '.join('?' * len(asked))})"  # noqa: S608 - question marks
    return {row[0] for row in connection.execute(known, (app, *asked)).fetchall()}


def _tell(connection: Connection, app: AppId, events: Sequence[UserEvent], now: Instant) -> None:
    users = sorted({each.user_id for each in events})
    asked = ", ".join("?" * len(users))
    active = f"SELECT body FROM series_member WHERE app = ? AND state = 'active' AND user_id IN ({asked})"  # noqa: S608 - as above
    for (body,) in connection.execute(active, (app, *users)).fetchall():
        member = _member(body)
        _tell_member(connection, member, [each.name for each in events if each.user_id == member.user_id], now)


def _tell_member(connection: Connection, member: Member, events: Sequence[str], now: Instant) -> None:
    """Tell a member of *events*; what somebody else wrote meanwhile is read again."""
    for _ in range(_TRIES):
        found = connection.execute(_VERSION, (member.app, member.series, member.version)).fetchall()
        if not found:
            return
        after = reduce(partial(told, series=_series(found[0][0])), events, member)
        if after is member or _replace_one(connection, member, after, now) is not None:
            return
        rows = connection.execute(_FIND, (member.app, member.series, member.user_id)).fetchall()
        if not rows:
            return
        member = _member(rows[0][0])
    raise Unavailable("a member of a series is being changed by others")


def _row(member: Member, now: Instant) -> Row:
    told_apart = member.state.value, member.due_at, member.written, now
    return (*told_apart, _encode(member), member.app, member.series, member.user_id)


def _add(transaction: Transaction, batch: Sequence[Series]) -> list[bool]:
    return [_add_one(transaction.connection, each) for each in batch]


def _add_one(connection: Connection, series: Series) -> bool:
    row = (series.app, series.name, series.version, _encode(series))
    is_new = connection.execute(_ADD_VERSION, row).rowcount > 0
    if is_new:
        connection.executemany(_ADD_EVENT, [(series.app, each, series.name) for each in sorted(events_of(series))])
    return is_new


def _join(transaction: Transaction, batch: Sequence[tuple[Member, Instant]]) -> list[bool]:
    return [_join_one(transaction.connection, *each) for each in batch]


def _join_one(connection: Connection, member: Member, now: Instant) -> bool:
    version = member.app, member.series, member.version
    return connection.execute(_ADD_MEMBER, (*_row(member, now), *version)).rowcount > 0


def _replace(transaction: Transaction, batch: Sequence[tuple[Member, Member, Instant]]) -> list[Member | None]:
    return [_replace_one(transaction.connection, *each) for each in batch]


def _replace_one(connection: Connection, before: Member, after: Member, now: Instant) -> Member | None:
    written = msgspec.structs.replace(after, written=before.written + 1)
    is_written = connection.execute(_REPLACE, (*_row(written, now), before.written)).rowcount > 0
    return written if is_written else None


def _remove(transaction: Transaction, names: Sequence[tuple[AppId, str]]) -> list[bool | None]:
    return [_remove_one(transaction.connection, *each) for each in names]


def _remove_one(connection: Connection, app: AppId, name: str) -> bool | None:
    """Remove a page of members, and the series with the last one; None where there may be more."""
    if connection.execute(_REMOVE_MEMBERS, (app, name, REMOVED_PAGE)).rowcount >= REMOVED_PAGE:
        return None
    events, versions = _REMOVE
    connection.execute(events, (app, name))
    return connection.execute(versions, (app, name)).rowcount > 0


def _hear(transaction: Transaction, events: Sequence[HeardEvent]) -> list[None]:
    hear(transaction, events)
    return [None] * len(events)


def _erase(transaction: Transaction, orders: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    transaction.connection.executemany(_ERASE, orders)
    return [None] * len(orders)


def _drop(transaction: Transaction, pages: Sequence[tuple[Instant, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP, each).rowcount for each in pages]


_ADDING = OperationKind("add_series", _add, durable=True)
_JOINING = OperationKind("join_series", _join, durable=True)
_REPLACING = OperationKind("replace_member", _replace, durable=True)
_REMOVING = OperationKind("remove_series", _remove, durable=True)
_HEARING = OperationKind("tell_series", _hear, durable=True)
_ERASING = OperationKind("erase_member", _erase, durable=True)
_DROPPING = OperationKind("drop_members", _drop, durable=False)
