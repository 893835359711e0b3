"""Releasing: what is due of the owned shards and not in anybody's hands; it writes nothing.

    notification  (lane, due_at, shard) WHERE due_at > 0           scheduled, replayed whole, or withdrawn while leased
    receipt       (lane, due_at, shard) WHERE due_at IS NOT NULL   retries, parked ones that expire, intents
    receipt       (parked, due_at, shard) WHERE parked ...         parked ones whose condition was lifted

Keys are read by pages from the indexes, passing over what is leased; the rows follow for what is left. All of it is
one short read transaction on the event loop: nothing can be leased between the read and what is remembered of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from waypost.adapters.sql.engine import Connection
from waypost.adapters.sql.lease import in_shards
from waypost.adapters.sql.rows import (
    NOTIFICATION,
    NOTIFICATION_WIDTH,
    RECEIPT,
    WITH_CONTENT,
    notification_of,
    receipt_of,
    select_in,
)
from waypost.adapters.sql.withdraw import TakeBack
from waypost.domain.delivery import OpenTarget, Receipt
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane
from waypost.domain.settlement import Change, Unsure
from waypost.domain.time import Instant
from waypost.ports.work import Settled, WorkItem

_PAGE = 512

_WHOLE = (
    "SELECT due_at, shard, seq, id FROM notification INDEXED BY notification_due"
    " WHERE lane = ? AND due_at > 0 AND due_at <= ? AND (due_at, shard, seq) > (?, ?, ?){shards}"
    " ORDER BY due_at, shard, seq LIMIT ?"
)
_DUE = (
    "SELECT due_at, shard, notification_id, n FROM receipt INDEXED BY receipt_due"
    " WHERE lane = ? AND due_at IS NOT NULL AND due_at <= ?"
    " AND (due_at, shard, notification_id, n) > (?, ?, ?, ?){shards}"
    " ORDER BY due_at, shard, notification_id, n LIMIT ?"
)
_LIFTED = (
    "SELECT due_at, shard, notification_id, n FROM receipt INDEXED BY receipt_parked"
    " WHERE parked = ? AND (due_at, shard, notification_id, n) > (?, ?, ?, ?){shards}"
    " ORDER BY due_at, shard, notification_id, n LIMIT ?"
)
_NOTIFICATIONS = (
    f"SELECT {NOTIFICATION}, withdrawn FROM {WITH_CONTENT}"  # noqa: S608 - columns
    " WHERE notification.id IN ({keys})"
)
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id IN ({{keys}})"  # noqa: S608 - a list of columns
_CONDITIONS = """\
WITH RECURSIVE found (parked) AS (
    SELECT min(parked) FROM receipt WHERE parked IS NOT NULL
    UNION ALL
    SELECT (SELECT min(parked) FROM receipt WHERE receipt.parked > found.parked) FROM found WHERE parked IS NOT NULL
)
SELECT parked FROM found WHERE parked IS NOT NULL
"""
"""One step down the index of what is parked for each condition."""

_FIRST_ROW = (-1, -1, -1)
_FIRST_TARGET = (-1, -1, b"", -1)

IsTaken = Callable[[NotificationId, int | None], bool]
_Found = dict[NotificationId, set[int | None]]


class Due(Struct):
    """What was found: work to lease, intents to close, withdrawn work to end."""

    items: list[WorkItem] = field(default_factory=list)
    entries: int = 0
    """Due entries in *items*: a notification whole, or a target."""
    intents: list[Settled] = field(default_factory=list)
    withdrawn: list[TakeBack] = field(default_factory=list)

    def without(self, touched: Collection[NotificationId]) -> Due:
        """What is left where these changed since it was read; they are found again if they are still due."""
        items = [item for item in self.items if item.notification.id not in touched]
        intents = [one for one in self.intents if one.notification.id not in touched]
        return Due(items, _entries(items), intents, [order for order in self.withdrawn if order.id not in touched])


def find_due(
    connection: Connection,
    shards: frozenset[int],
    now: Instant,
    n: int,
    rooms: Mapping[Lane, int],
    lifted: Mapping[str, int],
    is_taken: IsTaken,
) -> Due:
    """At most *n* due entries of *shards*: of each lane what *rooms* says, of each condition what *lifted* says."""
    connection.execute(connection.dialect.snapshot)
    try:
        found = _keys(connection, in_shards(shards), now, n, rooms, lifted, is_taken)
        return load(connection, found)
    finally:
        connection.execute("COMMIT")


def parked_under(connection: Connection) -> frozenset[str]:
    """Every condition under which something is parked."""
    return frozenset(row[0] for row in connection.execute(_CONDITIONS).fetchall())


def _keys(
    connection: Connection,
    shards: str,
    now: Instant,
    n: int,
    rooms: Mapping[Lane, int],
    lifted: Mapping[str, int],
    is_taken: IsTaken,
) -> _Found:
    found: _Found = {}
    left = n
    for lane, room in rooms.items():
        left -= _due_in_lane(connection, shards, (lane, now), min(room, left), is_taken, found)
    for condition, wanted in lifted.items():
        keys = _pages(connection, _LIFTED.format(shards=shards), (condition,), _FIRST_TARGET)
        left -= _choose(((key[2], key[3]) for key in keys), min(wanted, left), is_taken, found)
    return found


def _due_in_lane(
    connection: Connection, shards: str, asked: tuple[Lane, Instant], room: int, is_taken: IsTaken, found: _Found
) -> int:
    whole = _pages(connection, _WHOLE.format(shards=shards), asked, _FIRST_ROW)
    taken = _choose(((key[3], None) for key in whole), room, is_taken, found)
    targets = _pages(connection, _DUE.format(shards=shards), asked, _FIRST_TARGET)
    return taken + _choose(((key[2], key[3]) for key in targets), room - taken, is_taken, found)


def _choose(keys: Iterable[tuple[NotificationId, int | None]], n: int, is_taken: IsTaken, found: _Found) -> int:
    """Add at most *n* of *keys* that nobody has to *found*; how many it was."""
    chosen = 0
    if n > 0:
        for notification_id, part in keys:
            if not is_taken(notification_id, part) and part not in found.get(notification_id, ()):
                found.setdefault(notification_id, set()).add(part)
                chosen += 1
                if chosen == n:
                    break
    return chosen


def _pages(connection: Connection, sql: str, asked: tuple[Any, ...], first: tuple[Any, ...]) -> Iterator[Any]:
    """The keys of an index after *first*, page by page."""
    key = first
    while True:
        rows = connection.execute(sql, (*asked, *key, _PAGE)).fetchall()
        yield from rows
        if len(rows) < _PAGE:
            return
        key = rows[-1][: len(first)]


def load(connection: Connection, found: Mapping[NotificationId, set[int | None]]) -> Due:
    """The work items of these parts, in this order: target numbers, or None for a notification whole."""
    due = Due()
    receipts: dict[NotificationId, list[Receipt]] = {}
    routed = [one for one, parts in found.items() if parts != {None}]
    for row in select_in(connection, _RECEIPTS, routed):
        if row[1] in found[row[0]]:
            receipts.setdefault(row[0], []).append(receipt_of(row))
    items: dict[NotificationId, WorkItem] = {}
    for row in select_in(connection, _NOTIFICATIONS, list(found)):
        notification = notification_of(row)
        if row[NOTIFICATION_WIDTH] is not None:
            due.withdrawn.append(TakeBack(notification.app, notification.id, row[NOTIFICATION_WIDTH]))
        if row[NOTIFICATION_WIDTH] is None and None in found[notification.id]:
            items[notification.id] = WorkItem(notification, None)
        of_this = sorted(receipts.get(notification.id, ()), key=lambda receipt: receipt.n)
        over = tuple(_unsure(receipt) for receipt in of_this if receipt.is_intent)
        if over:
            due.intents.append(Settled(notification, over))
        waiting = tuple(_open_target(receipt) for receipt in of_this if not receipt.is_intent)
        if waiting and row[NOTIFICATION_WIDTH] is None:
            items[notification.id] = WorkItem(notification, waiting)
    due.items = [items[one] for one in found if one in items]
    due.entries = _entries(due.items)
    return due


def _entries(items: Iterable[WorkItem]) -> int:
    return sum(1 if item.open_targets is None else len(item.open_targets) for item in items)


def _unsure(receipt: Receipt) -> Change:
    """An intent without an outcome by its deadline: it may have been sent, and is never sent again."""
    assert receipt.due_at is not None, "an intent has a deadline"
    return Change(receipt.n, receipt.attempt, Unsure(receipt.code or "unanswered"), receipt.due_at)


def _open_target(receipt: Receipt) -> OpenTarget:
    assert receipt.channel is not None, "a target that no channel reaches is never open"
    return OpenTarget(
        receipt.n, receipt.device_id, receipt.channel, receipt.attempt, receipt.retries, receipt.throttles
    )
