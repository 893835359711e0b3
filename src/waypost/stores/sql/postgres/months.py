"""Months that are over: dropped whole, in two steps that stop nobody.

A month of which nothing is kept is detached (milliseconds under the table's lock, given up after half a second of
waiting) under another name, by which it is then dropped, however long that takes: it is no part of the table any more.
What goes with it is counted in the same transaction, for the balance.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
from msgspec import Struct
from psycopg import errors, sql

from waypost.domain.balance import DELIVERY, DROPPED
from waypost.domain.time import Instant
from waypost.stores.sql.postgres.partitions import (
    BY_ID,
    BY_NUMBER,
    LOCK_TIMEOUT,
    bounds,
    instant_of,
    month_after,
    month_of,
)

Connection = psycopg.Connection[tuple[Any, ...]]

_LOOK_TIMEOUT = b"SET statement_timeout = '60s'"
"""The time limit of the one statement that may read a month from end to end."""
_BY_INDEX = b"SET LOCAL enable_seqscan = off"
_PARTS = "SELECT relname FROM pg_class WHERE relispartition AND relname ~ %s"
_DOOMED = r"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^doomed_[a-z]+_\d{4}_\d{2}$'"
_KEEPS = "SELECT 1 FROM {month} WHERE finished_at IS NULL OR finished_at >= {before} LIMIT 1"
_OPEN = (
    "SELECT 1 FROM {notification} WHERE due_at = 0 UNION ALL SELECT 1 FROM {notification} WHERE due_at > 0"
    " UNION ALL SELECT 1 FROM {receipt} WHERE due_at IS NOT NULL LIMIT 1"
)
_NEEDED = (
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM notification WHERE id >= {first} AND id < {end})"
    " OR EXISTS (SELECT 1 FROM bulk_job WHERE number >= {low} AND number < {high})"
)

_COUNT_GONE = (
    "INSERT INTO counter (app, lane, hour, status, delta)"
    " SELECT app, lane, 0, {word} || status, count(*) FROM {notification} GROUP BY app, lane, status"
    " ON CONFLICT (app, lane, hour, status) DO UPDATE SET delta = counter.delta + excluded.delta"
)
_COUNT_RECEIPTS_GONE = (
    "INSERT INTO counter (app, lane, hour, status, delta)"
    " SELECT told.app, told.lane, 0, {word} || gone.status, count(*)"
    " FROM {receipt} AS gone JOIN {notification} AS told ON told.id = gone.notification_id"
    " GROUP BY told.app, told.lane, gone.status"
    " ON CONFLICT (app, lane, hour, status) DO UPDATE SET delta = counter.delta + excluded.delta"
)


class Dropped(Struct, frozen=True):
    """The result of dropping months that are over."""

    tables: int
    """The number of tables that went."""
    undropped: tuple[str, ...]
    """The tables that somebody used for so long that they wait for another time."""


def drop_months(connection: Connection, before: Instant) -> Dropped:
    """Drop every month that was over *before* and of which nothing is kept.

    A notification is kept that is open or was finished later; content also for notifications of the month after its
    own (the clocks of workers and server differ) and for bulk jobs.
    """
    connection.execute(_LOOK_TIMEOUT)
    undropped: list[str] = []
    for month in _past(connection, BY_ID[0], before):
        if _keeps_nothing(connection, month, before):
            undropped += _detach(connection, month, BY_ID)
    for month in _past(connection, BY_NUMBER, before):
        if not _is_content_needed(connection, month):
            undropped += _detach(connection, month, (BY_NUMBER,))
    doomed = sorted(row[0] for row in connection.execute(_DOOMED).fetchall())
    for name in doomed:
        receipts = name.replace("notification", "receipt")
        if receipts != name and receipts in doomed:
            _count_gone(connection, name, receipts)
    for name in doomed:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
    return Dropped(len(doomed), tuple(undropped))


def _count_gone(connection: Connection, notifications: str, receipts: str) -> None:
    """Count what two detached tables hold, and drop them with it: it is counted once."""
    notification, receipt = sql.Identifier(notifications), sql.Identifier(receipts)
    counts = sql.SQL(_COUNT_GONE).format(word=DROPPED, notification=notification)
    of_receipts = sql.SQL(_COUNT_RECEIPTS_GONE)
    with connection.transaction():
        connection.execute(b"SET LOCAL statement_timeout = 0")  # it reads a month from end to end
        connection.execute(counts)
        connection.execute(of_receipts.format(word=DROPPED + DELIVERY, notification=notification, receipt=receipt))
        connection.execute(sql.SQL("DROP TABLE {}, {}").format(notification, receipt))


def _past(connection: Connection, table: str, before: Instant) -> list[datetime]:
    """List the past months of *table*, by their beginnings."""
    names = [row[0] for row in connection.execute(_PARTS, (rf"^{table}_\d{{4}}_\d{{2}}$",)).fetchall()]
    starts = (datetime.strptime(name.removeprefix(table), "_%Y_%m").replace(tzinfo=UTC) for name in names)
    return [start for start in sorted(starts) if instant_of(month_after(start)) <= month_of(before)]


def _keeps_nothing(connection: Connection, month: datetime, before: Instant) -> bool:
    statement = sql.SQL(_KEEPS).format(month=_part("notification", month), before=before)
    try:
        return connection.execute(statement).fetchone() is None
    except errors.QueryCanceled:  # it is too large to look at: its rows go by pages
        return False


def _is_content_needed(connection: Connection, month: datetime) -> bool:
    following = month_after(month)
    first, end = bounds("notification", instant_of(month), instant_of(month_after(following)))
    low, high = bounds(BY_NUMBER, instant_of(month), instant_of(following))
    statement = sql.SQL(_NEEDED).format(first=first, end=end, low=low, high=high)
    return connection.execute(statement).fetchone() is not None


def _detach(connection: Connection, month: datetime, tables: Sequence[str]) -> list[str]:
    """Detach a month; not where it needs to wait for a lock, whose tables it names, or something was reopened."""
    try:
        with connection.transaction():
            connection.execute(LOCK_TIMEOUT)
            connection.execute(_BY_INDEX)
            for table in tables:
                detach = sql.SQL("ALTER TABLE {} DETACH PARTITION {}")
                connection.execute(detach.format(sql.Identifier(table), _part(table, month)))
            if tables == BY_ID and _is_open(connection, month):
                raise psycopg.Rollback
            for table in tables:
                rename = sql.SQL("ALTER TABLE {} RENAME TO {}")
                connection.execute(rename.format(_part(table, month), _part(f"doomed_{table}", month)))
    except errors.LockNotAvailable:
        return [f"{table}_{month:%Y_%m}" for table in tables]
    return []


def _is_open(connection: Connection, month: datetime) -> bool:
    notification, receipt = (_part(table, month) for table in BY_ID)
    return connection.execute(sql.SQL(_OPEN).format(notification=notification, receipt=receipt)).fetchone() is not None


def _part(table: str, month: datetime) -> sql.Identifier:
    return sql.Identifier(f"{table}_{month:%Y_%m}")
