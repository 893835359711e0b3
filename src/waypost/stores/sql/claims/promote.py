"""Releasing: what is due gets a claim that nobody has, or, an intent without an outcome, its end.

A reader looks first; a transaction follows only where there is something. Claims are made by one INSERT from the
rows themselves, locked: what has one already is not due again, and what somebody changes in this moment comes next
time, if it is due still. Where several apps have something due each gets its share before
the rest goes to whoever was due first; so do the conditions that are lifted.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.stores.sql.claims.claims import Claims, parts_of
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.lease import in_shards
from waypost.stores.sql.pending_changes import ROWS_LOCKED, PendingChanges
from waypost.stores.sql.plain_settlements import PlainSettlements
from waypost.stores.sql.promote import APPS_A_TURN, apps_due, load
from waypost.stores.sql.settle import settle_all
from waypost.stores.sql.transaction import OperationKind, Transaction

_TARGET = "SELECT 1 FROM claim WHERE notification_id = receipt.notification_id AND n = receipt.n"
# OFFSET 0 keeps these apart: joined freely, a small table is read from end to end, with all that is gone from it.
_UNCLAIMED = f" AND NOT EXISTS ({_TARGET} OFFSET 0)"
_NOT_HELD = f" AND NOT EXISTS ({_TARGET} AND holder IN (SELECT id FROM member) OFFSET 0)"  # noqa: S608 - conditions of ours
_WHOLE_UNCLAIMED = " AND NOT EXISTS (SELECT 1 FROM claim WHERE notification_id = notification.id AND n = -1 OFFSET 0)"
_DEAD = "holder IS NOT NULL AND holder NOT IN (SELECT id FROM member)"
_DUE_IN_LANE = (
    "EXISTS (SELECT 1 FROM (VALUES {lanes}) AS each (lane) CROSS JOIN LATERAL"
    " (SELECT 1 FROM {table} WHERE lane = each.lane AND {due} AND due_at <= ?1 AND due_at >= ?3{{shards}}{free}"
    " ORDER BY {key} LIMIT 1) AS first)"
)
"""By the index of a lane, which the order asks for: that of an app would be read from end to end."""
_LOOK = "SELECT {} OR {} OR {} OR CAST(?2 AS INTEGER) = 1 AND EXISTS (SELECT 1 FROM claim WHERE {})".format(  # noqa: S608 - conditions of ours
    *(
        _DUE_IN_LANE.format(
            lanes=", ".join(f"('{lane}')" for lane in Lane),
            table=table,
            due=due,
            free=free,
            key=f"due_at, shard, {key}",
        )
        for table, due, free, key in (
            ("notification", "due_at > 0 AND status = 'pending'", _WHOLE_UNCLAIMED, "seq"),
            ("receipt", "due_at > 0 AND status = 'pending'", _UNCLAIMED, "notification_id, n"),
            ("receipt", "due_at IS NOT NULL AND status = 'unknown'", _NOT_HELD, "notification_id, n"),
        )
    ),
    _DEAD,
)

_ADD = "INSERT INTO claim (notification_id, n, app, lane, free_at) SELECT "
_ONCE = f" LIMIT ?{ROWS_LOCKED} SKIP LOCKED ON CONFLICT (notification_id, n) DO NOTHING"
_AND_PUBLISH = (
    "WITH made AS ({add} RETURNING notification_id, n, app, lane)"
    " INSERT INTO outbox (notification_id, n, app, lane, added_at)"
    " SELECT notification_id, n, app, lane, {now} FROM made"
)
_WHOLE = (
    f"{_ADD}id, -1, app, lane, ? FROM notification WHERE lane = ? AND due_at > 0 AND due_at <= ? AND due_at >= ?"
    f" AND status = 'pending'{{shards}}{_WHOLE_UNCLAIMED} ORDER BY due_at, shard, seq{_ONCE}"
)
_DUE = (
    f"{_ADD}notification_id, n, app, lane, ? FROM receipt WHERE lane = ? AND due_at > 0 AND due_at <= ? AND due_at >= ?"
    f" AND status = 'pending'{{shards}}{_UNCLAIMED} ORDER BY due_at, shard, notification_id, n{_ONCE}"
)
_OF_APP = tuple(sql.replace("lane = ?", "lane = ? AND app = ?") for sql in (_WHOLE, _DUE))
_LIFTED = (
    f"{_ADD}notification_id, n, app, lane, ? FROM receipt WHERE parked = ?"
    f" AND status = 'pending'{{shards}}{_UNCLAIMED} ORDER BY due_at, shard, notification_id, n{_ONCE}"
)
_INTENTS = (
    "SELECT notification_id, n FROM receipt WHERE lane = ? AND due_at IS NOT NULL AND due_at <= ? AND due_at >= ?"  # noqa: S608 - conditions of ours
    f" AND status = 'unknown'{{shards}}{_NOT_HELD} ORDER BY due_at, shard, notification_id, n LIMIT ?"
)
_MEMBERS = "SELECT id FROM member"
_FREE = f"UPDATE claim SET holder = NULL, free_at = ? WHERE {_DEAD}"  # noqa: S608 - conditions of ours
_TURN_MS = 50
"""Milliseconds after which another app comes first: about with each release."""


class Timer(Struct, frozen=True):
    """A request to release at most *n* of what is due in *shards*."""

    now: Instant
    n: int
    shards: frozenset[int]
    lifted: tuple[tuple[str, int], ...]
    """Conditions, and how many parked under each may come back."""
    publishes: bool = False
    """Whether what becomes leasable goes to the outbox, too."""
    clean_among: frozenset[int] = frozenset()
    """The members among whom nobody is gone who holds anything: while they are these, nobody need be looked for."""
    since: Instant = Instant(0)
    """The time before which nothing open is due."""


class Released(Struct, frozen=True):
    """The claims made, and the claims freed that a dead worker had."""

    added: int
    freed: int


def is_something_due(connection: Connection, timer: Timer) -> tuple[bool, frozenset[int]]:
    """Tell whether a transaction is worth it, and who the members were before that was asked."""
    members = _members(connection)
    sql = _LOOK.replace("{shards}", in_shards(timer.shards))
    changed = int(members != timer.clean_among)
    return bool(timer.lifted) or bool(connection.execute(sql, (timer.now, changed, timer.since)).fetchone()[0]), members


def _members(connection: Connection) -> frozenset[int]:
    return frozenset(row[0] for row in connection.execute(_MEMBERS).fetchall())


def _run(transaction: Transaction, ops: Sequence[Timer]) -> list[Released]:
    return [_release(transaction, timer) for timer in ops]


RELEASE: OperationKind[Timer, Released] = OperationKind("release", _run, durable=False)


def _release(transaction: Transaction, timer: Timer) -> Released:
    connection = transaction.connection
    freed = connection.execute(_FREE, (transaction.now,)).rowcount if _members(connection) != timer.clean_among else 0
    left = timer.n
    for lane in Lane:
        _end_intents(transaction, timer, lane)
    for lane in Lane:  # after these: who holds rows of what is due waits for nobody who may want them
        left -= _add_due(transaction, timer, lane, left)
    left -= _add_lifted(transaction, timer, left)
    return Released(timer.n - left, freed)


def _add(transaction: Transaction, timer: Timer, sql: str, asked: tuple[str | int, ...]) -> int:
    """Make claims; return how many it was. The bound values end with the most."""
    sql = sql.replace("{shards}", in_shards(timer.shards))
    if timer.publishes:
        sql = _AND_PUBLISH.format(add=sql, now=transaction.now)
    return transaction.connection.execute(sql, (transaction.now, *asked)).rowcount


def _add_due(transaction: Transaction, timer: Timer, lane: Lane, n: int) -> int:
    """Claim at most *n* of what is due in *lane*."""
    left = n
    apps = apps_due(transaction.connection, lane, timer.now, AppId(""), timer.since)
    begin = timer.now // _TURN_MS % len(apps) if apps else 0
    turn = [*apps[begin:], *apps[:begin]][:APPS_A_TURN] if len(apps) > 1 else []
    share = max(1, n // len(turn)) if turn else 0
    for app in turn:
        of_app = min(share, left)
        for sql in _OF_APP:
            made = _add(transaction, timer, sql, (lane._value_, app, timer.now, timer.since, of_app))
            left, of_app = left - made, of_app - made
    for sql in (_WHOLE, _DUE):
        left -= _add(transaction, timer, sql, (lane._value_, timer.now, timer.since, left))
    return n - left


def _add_lifted(transaction: Transaction, timer: Timer, n: int) -> int:
    """Claim at most *n* of what is parked under the lifted conditions: a share each, then of those with more."""
    left, rooms = n, dict(timer.lifted)
    while left and rooms:
        share = max(1, left // len(rooms))
        for condition, room in list(rooms.items()):
            most = min(room, share, left)
            made = _add(transaction, timer, _LIFTED, (condition, most)) if most else 0
            left -= made
            rooms[condition] -= made
            if made < share or rooms[condition] <= 0:
                del rooms[condition]
    return n - left


def _end_intents(transaction: Transaction, timer: Timer, lane: Lane) -> None:
    """End intents of which nobody will report any more."""
    sql = _INTENTS.replace("{shards}", in_shards(timer.shards))
    rows = transaction.connection.execute(sql, (lane._value_, timer.now, timer.since, timer.n)).fetchall()
    if not rows:
        return
    found = parts_of(rows)
    over = load(transaction.connection, found).intents
    cases, plain = PendingChanges(transaction, found, by_shard=False), PlainSettlements(transaction)
    claims = Claims(transaction, found)
    settle_all(transaction, cases, plain, over)
    for notification_id, parts in found.items():
        case = cases.get(notification_id)
        for n, part in claims.of(notification_id).items():
            if n in parts or case is None or case.progress.is_final:
                part.end()
    cases.write()
    claims.write()
