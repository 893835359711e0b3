"""Erasures that a backup does not know, carried over from the store that it replaces."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.time import Instant
from waypost.stores.sql.added import make_missing
from waypost.stores.sql.connection import SqliteConnection, connect, dbapi
from waypost.stores.sql.erased import ERASED, ErasedUsers, Trace

_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"
_STANDING: Final = "SELECT id, app, user_id, tombstone, asked_at FROM erasure WHERE finished_at IS NULL"
_FINISHED: Final = """\
SELECT id, app, tombstone, asked_at, finished_at, salt, trace FROM erasure JOIN erased_user USING (id) ORDER BY asked_at
"""
_ADD: Final = """\
INSERT INTO erasure (id, app, user_id, tombstone, asked_at, finished_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_TRACE: Final = "INSERT INTO erased_user (id, salt, trace) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_KNOWN: Final = "SELECT id FROM erasure"


class Orders(Struct, frozen=True):
    """The erasures that a store knows."""

    standing: Sequence[tuple[Any, ...]]
    """Those that are not carried out yet, as rows."""
    finished: Sequence[tuple[Trace, Instant]]
    """Those that are, with their ends."""


def orders_in(database: Path) -> Orders | None:
    """Read the erasures that a store knows; None where it cannot be read, or is from before their traces were kept."""
    try:
        with contextlib.closing(connect(database, read_only=True)) as connection:
            if not {"erasure", ERASED.name} <= _tables(connection):
                return None
            finished = connection.execute(_FINISHED).fetchall()
            return Orders(
                connection.execute(_STANDING).fetchall(),
                [
                    (Trace(one, app, tombstone, asked_at, salt, trace), ended_at)
                    for one, app, tombstone, asked_at, ended_at, salt, trace in finished
                ],
            )
    except dbapi.Error:
        return None


def carry_over(orders: Orders, copy: Path) -> int:
    """Put *orders* that *copy* lacks into it; how many users of it are to be erased again, at the next start.

    Of an order that was carried out nobody knows the user; whoever in the copy has its trace is meant.
    """
    with contextlib.closing(dbapi.connect(str(copy), isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        make_missing([ERASED], _tables(connection).__contains__, connection.execute, is_remote=False)
        known = {bytes(row[0]) for row in connection.execute(_KNOWN).fetchall()}
        standing = [row for row in orders.standing if row[0] not in known]
        connection.executemany(_ADD, [(*row, None) for row in standing])
        lacking = [each for each in orders.finished if each[0].id not in known]
        again = _again(connection, [trace for trace, _ in lacking])
        for trace, ended_at in reversed(lacking):  # of one who was erased twice the later order reaches further
            user = again.get(trace.id)
            if user is None or not _order(connection, trace, user, None):
                _order(connection, trace, None, ended_at)
                connection.execute(_TRACE, (trace.id, trace.salt, trace.trace))
        connection.execute("COMMIT")
    carried_out = {(trace.app, again[trace.id]) for trace, _ in lacking if trace.id in again}
    return len(carried_out | {(app, user) for _, app, user, *_ in standing})


def _order(connection: SqliteConnection, trace: Trace, user: UserId | None, ended_at: Instant | None) -> bool:
    """Put an order into the copy, one that stands where its user is known; False where one for the user stands."""
    row = (trace.id, trace.app, user, trace.tombstone, trace.asked_at, ended_at)
    return bool(connection.execute(_ADD, row).rowcount)


def _again(connection: SqliteConnection, traces: Sequence[Trace]) -> dict[NotificationId, UserId]:
    """Find whom of the copy these traces are of."""
    by_app: dict[AppId, list[Trace]] = defaultdict(list)
    for each in traces:
        by_app[each.app].append(each)
    erased = {app: ErasedUsers(found) for app, found in by_app.items()}
    return {
        order.id: user
        for app, user in (_users(connection, list(by_app)) if by_app else ())
        for order in erased[app].orders_of(user)
    }


def _users(connection: SqliteConnection, apps: Sequence[AppId]) -> Iterator[tuple[AppId, UserId]]:
    """List the users that any table names, perhaps more than once; where it names no app, for each of *apps*."""
    for table in sorted(_tables(connection)):
        columns = {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall()}
        if "user_id" not in columns:
            continue
        if "app" in columns:
            for app in apps:
                rows = connection.execute(f'SELECT DISTINCT user_id FROM "{table}" WHERE app = ?', (app,))  # noqa: S608 - a name of its own
                yield from ((app, UserId(user)) for (user,) in rows if user is not None)
        else:
            rows = connection.execute(f'SELECT DISTINCT user_id FROM "{table}"')  # noqa: S608 - the same
            yield from ((app, UserId(user)) for (user,) in rows for app in apps)


def _tables(connection: SqliteConnection) -> set[str]:
    return {name for (name,) in connection.execute(_TABLES).fetchall()}
