"""Leasing: what the broker handed out, and what is overdue there, becomes one member's.

One statement each marks the entries that nobody holds; whatever was taken over, settled or withdrawn meanwhile is not
among them. Their notifications and receipts are read in the same transaction.

Rows that are picked under a limit with SKIP LOCKED are picked in ARRAY(...), which is evaluated once: in IN (...) a
plan may evaluate them for each row outside, and every time others are not locked yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import cast

from msgspec import Struct

from waypost.adapters.sql.amend import TakeBack, take_back
from waypost.adapters.sql.cases import Cases
from waypost.adapters.sql.engine import Connection
from waypost.adapters.sql.relayed.outbox import WHOLE, end, is_member
from waypost.adapters.sql.release import Due, load
from waypost.adapters.sql.transaction import Kind, Transaction
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import WorkItem

_HANDED_OUT = (
    "UPDATE outbox SET holder = ?, handed = handed + 1"
    " WHERE notification_id IN ({keys}) AND done_at IS NULL AND holder IS NULL{part} RETURNING notification_id, n, seq"
)
_OVERDUE = (
    "UPDATE outbox SET holder = ?, handed = handed + 1 WHERE seq = ANY(ARRAY("
    "SELECT seq FROM outbox WHERE lane = ? AND holder IS NULL AND again_at BETWEEN ? AND ? AND done_at IS NULL{part}"
    " ORDER BY again_at, seq LIMIT ? FOR UPDATE SKIP LOCKED)) RETURNING notification_id, n, seq"
)
_FIRST = "SELECT min(again_at) FROM outbox WHERE lane = ? AND holder IS NULL AND again_at >= ? AND done_at IS NULL"


class Part(StrEnum):
    """Of which entries something is wanted: a condition of the statement."""

    ANY = ""
    WHOLE = " AND n = -1"
    """What is to be routed."""
    TARGETS = " AND n >= 0"
    """What is to be sent."""


class Wanted(Struct, frozen=True):
    """What *member* wants to lease."""

    member: int
    lane: Lane
    handed_out: tuple[NotificationId, ...]
    """By the broker, in this order."""
    overdue_at: Instant
    """Entries that the broker should have handed out by then are taken as well."""
    n: int
    """Entries of that kind at most."""
    part: Part = Part.ANY
    since: Instant = Instant(0)
    """No entry is overdue that should have been handed out before, but those that came back."""


Leased = tuple[WorkItem, ...]
_Rows = Sequence[tuple[NotificationId, int, int]]


def _run(transaction: Transaction, ops: Sequence[Wanted]) -> list[Leased]:
    return [_lease(transaction, wanted) for wanted in ops]


LEASE: Kind[Wanted, Leased] = Kind("lease", _run, durable=False, patient=True)
"""Patient, so that its answer comes whatever becomes of the connection: nothing is held that nobody knows of."""


def _lease(transaction: Transaction, wanted: Wanted) -> Leased:
    connection = transaction.connection
    if not is_member(connection, wanted.member):
        return ()
    handed_out = _handed_out(connection, wanted)
    rows = _overdue(connection, wanted) + handed_out
    if not rows:
        return ()
    found: dict[NotificationId, set[int | None]] = {}
    for notification_id, n, _ in rows:
        found.setdefault(notification_id, set()).add(None if n == WHOLE else n)
    due = load(connection, found)
    _end_the_rest(transaction, rows, due)
    return tuple(due.items)


def _handed_out(connection: Connection, wanted: Wanted) -> list[tuple[NotificationId, int, int]]:
    rows: list[tuple[NotificationId, int, int]] = []
    for sql, chunk in connection.lists(_HANDED_OUT.replace("{part}", wanted.part), wanted.handed_out):
        rows += connection.execute(sql, (wanted.member, *chunk)).fetchall()
    place = {notification_id: at for at, notification_id in enumerate(wanted.handed_out)}
    return sorted(rows, key=lambda row: (place[row[0]], row[1]))


def _overdue(connection: Connection, wanted: Wanted) -> list[tuple[NotificationId, int, int]]:
    rows: list[tuple[NotificationId, int, int]] = []
    for first, last in ((0, 0), (max(1, wanted.since), wanted.overdue_at)):
        if len(rows) < wanted.n:
            bound = (wanted.member, wanted.lane._value_, first, last, wanted.n - len(rows))
            rows += connection.execute(_OVERDUE.replace("{part}", wanted.part), bound).fetchall()
    return sorted(rows, key=lambda row: row[2])


def first_open(connection: Connection, lane: Lane, since: Instant) -> Instant | None:
    """When the first entry of *lane* after *since* is or was due that nobody holds."""
    return cast("Instant | None", connection.execute(_FIRST, (lane, since)).fetchone()[0])


def _end_the_rest(transaction: Transaction, rows: _Rows, due: Due) -> None:
    """Entries of which nothing is to be sent: withdrawn while their worker died, or on the wire at most once."""
    parts: dict[NotificationId, frozenset[int]] = {
        item.notification.id: frozenset((WHOLE,) if item.open_targets is None else (t.n for t in item.open_targets))
        for item in due.items
    }
    rest = [seq for notification_id, n, seq in rows if n not in parts.get(notification_id, ())]
    end(transaction.connection, transaction.now, rest)
    if due.withdrawn:
        close_withdrawn(transaction, due.withdrawn)


def close_withdrawn(transaction: Transaction, orders: Sequence[TakeBack]) -> None:
    """End what was withdrawn while it was leased, and is not any more."""
    cases = Cases(transaction, (order.id for order in orders), by_shard=False)
    for order in orders:
        take_back(transaction, cases.get(order.id), order)
    cases.write()
