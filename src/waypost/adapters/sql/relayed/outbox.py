"""The outbox in a transaction: one row for each part of a notification that is to be published, leased or settled.

    outbox   INSERT with whatever makes a part leasable; UPDATE when it is claimed, published, leased and done

A part is a notification whole (WHOLE) or one of its targets. Who leased it is a member of those who share the store:
a lease lasts as long as its member does, so that it is never extended, and ends with it, so that nobody cleans up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from waypost.adapters.sql.engine import Connection, Row
from waypost.adapters.sql.rows import execute_in, select_in
from waypost.adapters.sql.transaction import Transaction
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import SECOND_MS, later
from waypost.ports.work import Arrival

WHOLE: Final = -1
OVERDUE_MS: Final = 10 * SECOND_MS
"""What was not leased for so long is leased without the broker, which may have lost it."""
AT_ONCE: Final = 0
"""Also when a target is due whose entry was made with it: no timer need look for that."""

INSERT = "INSERT INTO outbox (notification_id, n, app, lane, added_at, again_at) VALUES "
VALUES = "(?, ?, ?, ?, ?, ?)"
_INSERT_HELD = (
    "INSERT INTO outbox (notification_id, n, app, lane, added_at, published_at, again_at, holder, handed) VALUES "
)
_HELD_VALUES = "(?, ?, ?, ?, ?, ?, 0, ?, 1)"
_OPEN = (
    "SELECT seq, notification_id, n, holder FROM outbox WHERE notification_id IN ({keys}) AND done_at IS NULL"
    " ORDER BY seq FOR UPDATE"
)
_DONE = "UPDATE outbox SET holder = NULL, done_at = ? WHERE seq IN ({keys})"
_FREE = "UPDATE outbox SET holder = NULL, again_at = 0 WHERE seq IN ({keys})"
_MEMBERS = "SELECT id FROM member"
_FENCE = "SELECT id FROM member WHERE id = ? FOR SHARE"


def write_arrivals(transaction: Transaction, arrivals: Sequence[Arrival], _: Sequence[int]) -> None:
    """Write the entries of what was just accepted, to be sent now."""
    now = transaction.now
    again_at = later(now, OVERDUE_MS)
    made = (arrival.notification for arrival in arrivals)
    rows = [(one.id, WHOLE, one.app, one.lane._value_, now, again_at) for one in made]
    transaction.connection.insert_all(INSERT, VALUES, rows)


def is_member(connection: Connection, member: int) -> bool:
    """Whether *member* holds what it leased, and will until the transaction ends."""
    return connection.execute(_FENCE, (member,)).fetchone() is not None


def end(connection: Connection, now: int, seqs: Sequence[int]) -> None:
    """Nothing more is to be done for these entries."""
    for sql, chunk in connection.lists(_DONE, seqs):
        connection.execute(sql, (now, *chunk))


class Entry:
    """A part that is not done."""

    __slots__ = ("done", "holder", "moved", "seq")

    def __init__(self, seq: int | None, holder: int | None) -> None:
        self.seq = seq
        """None: not written yet."""
        self.holder = holder
        self.done = False
        self.moved = False

    def let_go(self) -> None:
        """Leasable at once, by whomever."""
        self.holder = None
        self.moved = True

    def end(self) -> None:
        """Nothing more is to be done for it."""
        self.done = True


class Outbox:
    """What stands in the outbox of some notifications: read, changed in memory, written together."""

    def __init__(self, transaction: Transaction, ids: Iterable[NotificationId]) -> None:
        connection = transaction.connection
        self._transaction = transaction
        self._members = {row[0] for row in connection.execute(_MEMBERS).fetchall()}
        self._entries: dict[NotificationId, dict[int, Entry]] = {}
        self._new: list[tuple[NotificationId, int, AppId, Lane, Entry]] = []
        for seq, notification_id, n, holder in select_in(connection, _OPEN, list(dict.fromkeys(ids))):
            self._entries.setdefault(notification_id, {})[n] = Entry(seq, holder)

    def of(self, notification_id: NotificationId) -> Mapping[int, Entry]:
        """Its parts that are not done."""
        return {n: entry for n, entry in self._entries.get(notification_id, {}).items() if not entry.done}

    def held(self, notification_id: NotificationId, member: int | None = None) -> dict[int, Entry]:
        """What of it is leased, by *member* or (None) by anybody alive."""
        holders = self._members if member is None else {member}
        return {n: entry for n, entry in self.of(notification_id).items() if entry.holder in holders}

    def add(self, notification_id: NotificationId, n: int, app: AppId, lane: Lane, holder: int | None) -> None:
        """A part of what was leased whole: held on, or to be published."""
        entry = Entry(None, holder)
        self._entries.setdefault(notification_id, {})[n] = entry
        self._new.append((notification_id, n, app, lane, entry))

    def write(self) -> None:
        """Write what changed."""
        connection, now = self._transaction.connection, self._transaction.now
        every = [entry for parts in self._entries.values() for entry in parts.values() if entry.seq is not None]
        end(connection, now, [entry.seq for entry in every if entry.done and entry.seq is not None])
        execute_in(connection, _FREE, [entry.seq for entry in every if entry.moved and not entry.done])
        held: list[Row] = []
        free: list[Row] = []
        for notification_id, n, app, lane, entry in self._new:
            part = (notification_id, n, app, lane._value_, now)
            if not entry.done and entry.holder is None:
                free.append((*part, later(now, OVERDUE_MS)))
            elif not entry.done:
                held.append((*part, now, entry.holder))
        connection.insert_all(_INSERT_HELD, _HELD_VALUES, held)
        connection.insert_all(INSERT, VALUES, free)
