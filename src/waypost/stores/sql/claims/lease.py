"""Leasing: what is fresh and unclaimed, and what waits with a claim that nobody has, becomes one member's.

Fresh rows are found from where the tail stands, passing over what is claimed, and claimed in the same statement:
``FOR UPDATE SKIP LOCKED`` passes over what another claims in this moment and looks again at a row that was changed
meanwhile, and the key of ``claim`` refuses what another has claimed since the statement began.

Rows that are picked under a limit with SKIP LOCKED are picked in ARRAY(...), which is evaluated once: in IN (...) a
plan may evaluate them for each row outside, and every time others are not locked yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import cast

from msgspec import Struct

from waypost.domain.ids import SHARDS, AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import WorkItem
from waypost.stores.sql.amend import TakeBack, take_back
from waypost.stores.sql.claims.claims import end, is_member, let_go, parts_of
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.outbox.entries import WHOLE
from waypost.stores.sql.pending_changes import PendingChanges
from waypost.stores.sql.promote import DueWork, load
from waypost.stores.sql.rows import NOTIFICATION_WIDTH, notification_of
from waypost.stores.sql.transaction import OperationKind, Transaction

CLAIMED = "EXISTS (SELECT 1 FROM claim WHERE notification_id = notification.id AND n = -1)"
_COLUMNS = (
    "id, app, caller, user_id, created_at, expires_at, ttl_ms, lane, kind, urgency, guarantee, device_ids,"
    " scheduled_at, retry_policy, variables, seq"
)
_FRESH = f"""\
WITH free AS MATERIALIZED (
    SELECT {_COLUMNS} FROM notification
    WHERE lane = ?1 AND app = ?2 AND due_at = 0 AND seq > ?3 AND +shard < {SHARDS} AND status = 'pending'
        AND NOT {CLAIMED}
    ORDER BY seq LIMIT ?4 FOR UPDATE SKIP LOCKED
), taken AS (
    INSERT INTO claim (notification_id, n, app, lane, free_at, holder) SELECT id, -1, app, lane, 0, ?5 FROM free
    ON CONFLICT DO NOTHING RETURNING notification_id
)
SELECT id, app, caller, user_id, body, created_at, expires_at, ttl_ms, lane, kind, urgency, guarantee, device_ids,
    scheduled_at, retry_policy, variables, free.seq, id IN (SELECT notification_id FROM taken)
FROM free LEFT JOIN content ON content.seq = free.seq ORDER BY free.seq
"""  # noqa: S608 - columns
_WAITING = (
    "UPDATE claim SET holder = ? WHERE seq = ANY(ARRAY("
    "SELECT seq FROM claim WHERE lane = ? AND holder IS NULL AND free_at >= ?{part}"
    " ORDER BY free_at, seq LIMIT ? FOR UPDATE SKIP LOCKED)) AND lane = ? AND holder IS NULL AND free_at >= ?"
    " RETURNING notification_id, n, seq"
)
_FIRST = "SELECT min(free_at) FROM claim WHERE lane = ? AND holder IS NULL AND free_at >= ?{part}"


class Part(StrEnum):
    """The parts that are wanted: a condition of the statement."""

    ANY = ""
    WHOLE = " AND n = -1"
    """The parts to be routed."""
    TARGETS = " AND n >= 0"
    """The parts to be sent."""


class LeaseRequest(Struct, frozen=True):
    """A request of *member* to lease *n* parts at most."""

    member: int
    lane: Lane
    n: int
    since: Instant | None
    """The time since when what waits has waited, at the earliest; None: nothing does."""
    part: Part = Part.ANY
    fresh: tuple[tuple[AppId, int], ...] = ()
    """The apps that may have something fresh after that number, in turn."""


class Passed(Struct, frozen=True):
    """The number up to which the fresh rows of an app were looked through."""

    app: AppId
    after: int
    """The number from which it was looked through."""
    last: int
    is_all: bool
    """Whether nothing came after."""
    found: int


class Leased(Struct, frozen=True):
    """The parts that are the member's now."""

    items: tuple[WorkItem, ...]
    passed: tuple[Passed, ...] = ()
    newer: tuple[tuple[NotificationId, int | None], ...] = ()
    """The parts that waited, and are for a newer version to go on with."""


NOTHING = Leased(())


def _run(transaction: Transaction, ops: Sequence[LeaseRequest]) -> list[Leased]:
    return [_lease(transaction, wanted) for wanted in ops]


LEASE: OperationKind[LeaseRequest, Leased] = OperationKind("lease", _run, durable=False, patient=True)
"""Patient, so that its answer comes whatever becomes of the connection: nothing is held that nobody knows of."""


def _lease(transaction: Transaction, wanted: LeaseRequest) -> Leased:
    connection = transaction.connection
    if not is_member(connection, wanted.member):
        return NOTHING
    waited = _waiting(transaction, wanted) if wanted.since is not None else DueWork()
    items = waited.items
    passed = _Fresh(connection, wanted).take(wanted.n - len(items), items)
    return Leased(tuple(items), passed, tuple(waited.newer))


class _Fresh:
    """A search for fresh rows; apps take turns: each its share, then again those that have more."""

    def __init__(self, connection: Connection, wanted: LeaseRequest) -> None:
        self._connection = connection
        self._wanted = wanted
        self._passed = {app: Passed(app, after, after, is_all=False, found=0) for app, after in wanted.fresh}

    def take(self, n: int, items: list[WorkItem]) -> tuple[Passed, ...]:
        """Add at most *n* to *items*; return how far that came."""
        waiting = list(self._passed)
        while waiting and n > 0:
            share = -(-n // len(waiting))
            for app in waiting:
                wanted = min(share, n)
                if wanted > 0:
                    rows = self._claim(app, wanted)
                    items += [WorkItem(notification_of(row), None) for row in rows]
                    n -= len(rows)
            waiting = [app for app in waiting if not self._passed[app].is_all]
        return tuple(each for each in self._passed.values() if each.last > each.after or each.is_all)

    def _claim(self, app: AppId, n: int) -> list[Row]:
        before = self._passed[app]
        bound = (self._wanted.lane._value_, app, before.last, n, self._wanted.member)
        rows = self._connection.execute(_FRESH, bound).fetchall()
        last = rows[-1][NOTIFICATION_WIDTH] if rows else before.last
        taken = [row for row in rows if row[NOTIFICATION_WIDTH + 1]]
        self._passed[app] = Passed(app, before.after, last, len(rows) < n, before.found + len(taken))
        return taken


def _waiting(transaction: Transaction, wanted: LeaseRequest) -> DueWork:
    """Lease what waits, the longest waiting first."""
    connection, lane, since = transaction.connection, wanted.lane._value_, wanted.since
    bound = (wanted.member, lane, since, wanted.n, lane, since)
    rows = connection.execute(_WAITING.replace("{part}", wanted.part), bound).fetchall()
    if not rows:
        return DueWork()
    parts = [(row[0], row[1]) for row in sorted(rows, key=lambda row: row[2])]
    due = load(connection, parts_of(parts))
    _end_the_rest(transaction, parts, due)
    return due


def first_waiting(connection: Connection, lane: Lane, since: Instant, part: Part = Part.ANY) -> Instant | None:
    """Return since when the first part of *lane* waits, of those that wait since *since* or later."""
    sql = _FIRST.replace("{part}", part)
    return cast("Instant | None", connection.execute(sql, (lane, since)).fetchone()[0])


def _end_the_rest(transaction: Transaction, parts: Sequence[tuple[NotificationId, int]], due: DueWork) -> None:
    """End parts of which nothing is to be sent: withdrawn while their worker died, or on the wire at most once.

    Those that a newer version has to go on with wait for its workers.
    """
    leased: dict[NotificationId, frozenset[int]] = {
        item.notification.id: frozenset((WHOLE,) if item.open_targets is None else (t.n for t in item.open_targets))
        for item in due.items
    }
    newer = {(one, WHOLE if n is None else n) for one, n in due.newer}
    let_go(transaction.connection, newer, transaction.now)
    rest = [(one, n) for one, n in parts if n not in leased.get(one, ())]
    end(transaction.connection, [each for each in rest if each not in newer])
    if due.withdrawn:
        close_withdrawn(transaction, due.withdrawn)


def close_withdrawn(transaction: Transaction, orders: Sequence[TakeBack]) -> None:
    """Close what was withdrawn while it was leased, and is not leased any more."""
    cases = PendingChanges(transaction, (order.id for order in orders), by_shard=False)
    for order in orders:
        take_back(transaction, cases.get(order.id), order)
    cases.write()
