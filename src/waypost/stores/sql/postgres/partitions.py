"""Partitions by month: made ahead, so that no insert waits for one, and each with what lies outside of all in a rest.

``notification`` and ``receipt`` are cut by id, which begins with its time, ``content`` by its number, which does so
too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
from psycopg import errors, sql

from waypost.domain.ids import first_id_at
from waypost.domain.time import Instant
from waypost.stores.sql.postgres.statements import MS_IN_NUMBER

BY_ID = ("notification", "receipt")
BY_NUMBER = "content"
MONTHS_AHEAD = 2

LOCK_TIMEOUT = b"SET LOCAL lock_timeout = '500ms'"
"""Whoever comes after a statement that waits for such a lock waits for it, too: no longer than this."""
_MADE_ALREADY = (errors.DuplicateTable, errors.UniqueViolation)
"""The errors of a partition made by another process at the same moment: its name is in the catalogue already."""
_ATTACHED = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relispartition AND relname = ANY(%s)"
_EXISTING = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname = ANY(%s)"


def ensure(connection: psycopg.Connection[tuple[object, ...]], now: Instant) -> int:
    """Make those of the month of *now* and the months ahead; how many were made.

    A table is made by itself and then attached, which stops neither reads nor inserts of the others. One that would
    have to wait is made another time; a month of which rows are in the rest already stays there.
    """
    wanted = list(_months(now))
    names = [f"{table}_{name}" for name, *_ in wanted for table in (*BY_ID, BY_NUMBER)]
    existing = {row[0] for row in connection.execute(_EXISTING, (names,)).fetchall()}
    made = 0
    for name, start, end in wanted:
        for table in (*BY_ID, BY_NUMBER):
            if f"{table}_{name}" not in existing:
                low, high = bounds(table, start, end)
                with contextlib.suppress(errors.LockNotAvailable, errors.CheckViolation, *_MADE_ALREADY):
                    _make(connection, table, f"{table}_{name}", low, high)
                    made += 1
    return made


def missing(connection: psycopg.Connection[tuple[object, ...]], now: Instant) -> tuple[str, ...]:
    """List the partitions of the month of *now* and the months ahead that no row can go to."""
    names = [f"{table}_{name}" for name, *_ in _months(now) for table in (*BY_ID, BY_NUMBER)]
    attached = {row[0] for row in connection.execute(_ATTACHED, (names,)).fetchall()}
    return tuple(name for name in names if name not in attached)


def _make(
    connection: psycopg.Connection[tuple[object, ...]], table: str, name: str, low: sql.Literal, high: sql.Literal
) -> None:
    parent, made = sql.Identifier(table), sql.Identifier(name)
    with connection.transaction():
        connection.execute(LOCK_TIMEOUT)
        connection.execute(
            sql.SQL(
                "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)"
                " WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)"
            ).format(made, parent)
        )
        attach = sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})")
        connection.execute(attach.format(parent, made, low, high))


def _months(now: Instant) -> Iterator[tuple[str, Instant, Instant]]:
    """Yield name, start and end of each month that must be there."""
    first = datetime.fromtimestamp(month_of(now) / 1000, UTC)
    for _ in range(1 + MONTHS_AHEAD):
        following = month_after(first)
        yield f"{first:%Y_%m}", instant_of(first), instant_of(following)
        first = following


def month_of(moment: Instant) -> Instant:
    """Return when the month of *moment* began."""
    at = datetime.fromtimestamp(moment / 1000, UTC)
    return instant_of(at.replace(day=1, hour=0, minute=0, second=0, microsecond=0))


def month_after(start: datetime) -> datetime:
    """Return the month after the one that began at *start*."""
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def instant_of(moment: datetime) -> Instant:
    """Convert a datetime to milliseconds, as everywhere."""
    return Instant(int(moment.timestamp()) * 1000)


def bounds(table: str, start: Instant, end: Instant) -> tuple[sql.Literal, sql.Literal]:
    """Return what a table's rows of that time begin at and end before."""
    if table == BY_NUMBER:
        return sql.Literal(start * MS_IN_NUMBER), sql.Literal(end * MS_IN_NUMBER)
    return sql.Literal(bytes(first_id_at(start))), sql.Literal(bytes(first_id_at(end)))
