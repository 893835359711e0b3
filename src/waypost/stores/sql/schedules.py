"""Schedules on SQL: one row each, written as a whole where it is still as it was read.

schedule   (app, name) what it is, in ``body``; (due_at, …) what is due, soonest first
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from waypost.domain.ids import AppId, UserId
from waypost.domain.schedule import Schedule
from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.rows import readable
from waypost.stores.sql.transaction import OperationKind, Transaction

SCHEDULE: Final = AddedTable(
    "schedule",
    "CREATE TABLE IF NOT EXISTS schedule"
    " (app {text} NOT NULL, name {text} NOT NULL, user_id {text}, status {text} NOT NULL, due_at {number},"
    " version {number} NOT NULL, changed_at {number} NOT NULL, body {blob} NOT NULL,"
    " PRIMARY KEY (app, name), UNIQUE (due_at, app, name), UNIQUE (app, user_id, name),"
    " UNIQUE (status, changed_at, app, name)){layout}",
)
_ADD: Final = """\
INSERT INTO schedule (user_id, status, due_at, version, changed_at, body, app, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (app, name) DO NOTHING
"""
_REPLACE: Final = """\
UPDATE schedule SET user_id = ?, status = ?, due_at = ?, version = ?, changed_at = ?, body = ?
WHERE app = ? AND name = ? AND version = ?
"""
_FIND: Final = "SELECT body FROM schedule WHERE app = ? AND name = ?"
_LIST: Final = "SELECT body FROM schedule WHERE app = ? AND name > ? ORDER BY name LIMIT ?"
_NEXT_DUE: Final = "SELECT min(due_at) FROM schedule"
_DUE: Final = """\
SELECT body, due_at, app, name FROM schedule
WHERE due_at <= ? AND (due_at, app, name) > (?, ?, ?) ORDER BY due_at, app, name LIMIT ?
"""
_REMOVE: Final = "DELETE FROM schedule WHERE app = ? AND name = ?"
_ERASE: Final = "DELETE FROM schedule WHERE app = ? AND user_id = ? AND changed_at <= ?"
_DROP: Final = (
    "DELETE FROM schedule WHERE (app, name) IN"
    " (SELECT app, name FROM schedule WHERE status = 'ended' AND changed_at < ? LIMIT ?)"
)

_decode: Final = msgspec.msgpack.Decoder(Schedule).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class SqlSchedules:
    """The store of schedules."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, schedule: Schedule, now: Instant) -> bool:
        """Add a schedule; False where there is one of that name."""
        return await self._database.commits.submit(_ADDING, (schedule, now))

    async def replace(self, before: Schedule, after: Schedule, now: Instant) -> Schedule | None:
        """Write *after* in the place of *before*, and return it as it is then.

        None where somebody else wrote or removed it since that was read.
        """
        return await self._database.commits.submit(_REPLACING, (before, after, now))

    async def find(self, app: AppId, name: str) -> Schedule | None:
        """Find the schedule of that name."""
        row = await self._database.read(lambda connection: connection.execute(_FIND, (app, name)).fetchone())
        return None if row is None else _decode(row[0])

    async def page(self, app: AppId, after: str, n: int) -> list[Schedule]:
        """List at most *n* schedules of an app, by name, after one."""
        return await self._rows(_LIST, (app, after, n))

    async def due(self, now: Instant, n: int) -> AsyncIterator[list[Schedule]]:
        """Yield those that are due or claimed, soonest first, in pages of at most *n*; see ``readable``."""
        place: Row = (0, "", "")
        while rows := await self._fetch(_DUE, (now, *place, n)):
            place = rows[-1][1:]
            yield readable(_decode, rows)

    async def next_due(self) -> Instant | None:
        """Find when the next one is due; None where none is."""
        ((at,),) = await self._fetch(_NEXT_DUE, ())
        return None if at is None else Instant(at)

    async def remove(self, app: AppId, name: str) -> bool:
        """Remove a schedule; False where there is none."""
        return await self._database.commits.submit(_REMOVING, (app, name))

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """Forget the schedules of a user as they were until then."""
        await self._database.commits.submit(_ERASING, (app, user_id, until))

    async def drop(self, before: Instant, page: int) -> int:
        """Delete a page of those that ended before a time; return how many it was."""
        return await self._database.commits.submit(_DROPPING, (before, page))

    async def _rows(self, sql: str, bound: Row) -> list[Schedule]:
        return [_decode(row[0]) for row in await self._fetch(sql, bound)]

    async def _fetch(self, sql: str, bound: Row) -> list[Row]:
        return await self._database.read(lambda connection: connection.execute(sql, bound).fetchall())


def _row(schedule: Schedule, now: Instant) -> Row:
    told = schedule.user_id, schedule.status.value, schedule.due_at, schedule.version, now
    return (*told, _encode(schedule), schedule.app, schedule.name)


def _add(transaction: Transaction, batch: Sequence[tuple[Schedule, Instant]]) -> list[bool]:
    return [transaction.connection.execute(_ADD, _row(each, now)).rowcount > 0 for each, now in batch]


def _replace(transaction: Transaction, batch: Sequence[tuple[Schedule, Schedule, Instant]]) -> list[Schedule | None]:
    return [_replace_one(transaction.connection, *each) for each in batch]


def _replace_one(connection: Connection, before: Schedule, after: Schedule, now: Instant) -> Schedule | None:
    written = msgspec.structs.replace(after, version=before.version + 1)
    is_written = connection.execute(_REPLACE, (*_row(written, now), before.version)).rowcount > 0
    return written if is_written else None


def _remove(transaction: Transaction, names: Sequence[tuple[AppId, str]]) -> list[bool]:
    return [transaction.connection.execute(_REMOVE, each).rowcount > 0 for each in names]


def _erase(transaction: Transaction, orders: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    transaction.connection.executemany(_ERASE, orders)
    return [None] * len(orders)


def _drop(transaction: Transaction, pages: Sequence[tuple[Instant, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP, each).rowcount for each in pages]


_ADDING = OperationKind("add_schedule", _add, durable=True)
_REPLACING = OperationKind("replace_schedule", _replace, durable=True)
_REMOVING = OperationKind("remove_schedule", _remove, durable=True)
_ERASING = OperationKind("erase_schedules", _erase, durable=True)
_DROPPING = OperationKind("drop_schedules", _drop, durable=False)
