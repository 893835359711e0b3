"""Claims: a row of ``claim`` for each part of a notification that is leased, or is due and waits to be.

    claim   INSERT when something fresh is leased or something is due; UPDATE when what waits is leased, or is let go
            of; DELETE when it is settled

A part is a notification whole (WHOLE) or one of its targets. What is fresh and in nobody's hands has no row. Who has
a part is a member of those who share the store: a lease ends with its member, by the server's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.outbox.entries import INSERT, VALUES, WHOLE
from waypost.stores.sql.postgres.connection import Blobs, Numbers, Texts
from waypost.stores.sql.rows import execute_in, select_in
from waypost.stores.sql.transaction import Transaction

HANDED_OVER: Final = 0
"""The due time of a target whose claim was made with it: no timer need look for that."""

_INSERT = (
    "INSERT INTO claim (notification_id, n, app, lane, holder, free_at)"
    " SELECT given.*, CAST(? AS bigint) FROM unnest(?, ?, ?, ?, ?) AS given"
)
_FIND = "SELECT notification_id, n, holder FROM claim WHERE notification_id IN ({keys})"
_LOCKED = " FOR UPDATE"
"""What waits may be leased in this moment: that is over before it is decided about, or comes after."""
_END = "DELETE FROM claim WHERE notification_id IN ({{keys}}) AND n = {n}"
_FREE = "UPDATE claim SET holder = NULL, free_at = {now} WHERE notification_id IN ({{keys}}) AND n = {n}"
_MEMBERS = "SELECT id FROM member"
_FENCE = "SELECT id FROM member WHERE id = ? FOR SHARE"


def is_member(connection: Connection, member: int) -> bool:
    """Tell whether *member* has what it leased, and will until the transaction ends."""
    return connection.execute(_FENCE, (member,)).fetchone() is not None


def end(connection: Connection, parts: Iterable[tuple[NotificationId, int]]) -> None:
    """End these parts: nothing more is to be done for them."""
    _each_n(connection, _END, parts)


def let_go(connection: Connection, parts: Iterable[tuple[NotificationId, int]], now: Instant) -> None:
    """Let anybody lease these parts."""
    _each_n(connection, _FREE, parts, now=now)


def _each_n(connection: Connection, sql: str, parts: Iterable[tuple[NotificationId, int]], **said: int) -> None:
    """Run a statement for the notifications of each *n*: nearly always there is one."""
    ids: dict[int, list[NotificationId]] = {}
    for notification_id, n in parts:
        ids.setdefault(n, []).append(notification_id)
    for n, of_n in ids.items():
        execute_in(connection, sql.format(n=n, **said), of_n)


class Claimed:
    """A part that is leased, or is due and waits."""

    __slots__ = ("done", "holder", "is_new", "moved")

    def __init__(self, holder: int | None, *, is_new: bool = False) -> None:
        self.holder = holder
        self.is_new = is_new
        self.done = False
        self.moved = False

    def let_go(self) -> None:
        """Let anybody lease it at once."""
        self.holder = None
        self.moved = True

    def end(self) -> None:
        """End it: nothing more is to be done."""
        self.done = True


class Claims:
    """The claims on some notifications: read, changed in memory, written together."""

    def __init__(self, transaction: Transaction, ids: Iterable[NotificationId], *, locked: bool = True) -> None:
        """Read the claims; without *locked*, their holder asks: nobody else changes those of a member that is alive."""
        connection = transaction.connection
        find = _FIND + _LOCKED if locked else _FIND
        self._transaction = transaction
        self._parts: dict[NotificationId, dict[int, Claimed]] = {}
        self._new: list[tuple[NotificationId, int, AppId, Lane, Claimed]] = []
        for notification_id, n, holder in select_in(connection, find, list(dict.fromkeys(ids))):
            self._parts.setdefault(notification_id, {})[n] = Claimed(holder)

    def of(self, notification_id: NotificationId) -> Mapping[int, Claimed]:
        """Return its parts that are not done."""
        return {n: part for n, part in self._parts.get(notification_id, {}).items() if not part.done}

    def held_by(self, member: int, notification_id: NotificationId) -> dict[int, Claimed]:
        """Return the parts of it that *member* has leased."""
        return {n: part for n, part in self.of(notification_id).items() if part.holder == member}

    def held(self, notification_id: NotificationId) -> dict[int, Claimed]:
        """Return the parts of it that anybody alive has leased."""
        held = {n: part for n, part in self.of(notification_id).items() if part.holder is not None}
        if not held:
            return held
        members = {row[0] for row in self._transaction.connection.execute(_MEMBERS).fetchall()}
        return {n: part for n, part in held.items() if part.holder in members}

    def add(self, notification_id: NotificationId, n: int, app: AppId, lane: Lane, holder: int | None) -> Claimed:
        """Add a part of what was leased whole: held on, or to be leased by anybody."""
        part = Claimed(holder, is_new=True)
        self._parts.setdefault(notification_id, {})[n] = part
        self._new.append((notification_id, n, app, lane, part))
        return part

    def write(self, *, publishes: bool = False) -> None:
        """Write what changed, and an outbox entry for each new part that waits, where somebody *publishes*."""
        connection, now = self._transaction.connection, self._transaction.now
        stored = [(one, n, part) for one, parts in self._parts.items() for n, part in parts.items() if not part.is_new]
        end(connection, [(one, n) for one, n, part in stored if part.done])
        moved = [(one, n) for one, n, part in stored if part.moved and not part.done]
        let_go(connection, moved, now)
        new = [(one, n, app, lane._value_, part.holder) for one, n, app, lane, part in self._new if not part.done]
        if new:
            ids, ns, apps, lanes, holders = zip(*new, strict=True)
            connection.execute(_INSERT, (now, Blobs(ids), Numbers(ns), Texts(apps), Texts(lanes), Numbers(holders)))
            if publishes:
                connection.insert_all(INSERT, VALUES, [(*each[:4], now) for each in new if each[4] is None])


def parts_of(rows: Sequence[tuple[NotificationId, int]]) -> dict[NotificationId, set[int | None]]:
    """Group by notification: target numbers, or None for it whole."""
    found: dict[NotificationId, set[int | None]] = {}
    for notification_id, n in rows:
        found.setdefault(notification_id, set()).add(None if n == WHOLE else n)
    return found
