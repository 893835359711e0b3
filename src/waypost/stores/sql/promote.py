"""Releasing: finding what is due of the owned shards and not in anybody's hands; it writes nothing.

    notification  (lane, due_at, shard) WHERE due_at > 0           scheduled, replayed whole, or withdrawn while leased
    receipt       (lane, due_at, shard) WHERE due_at IS NOT NULL   retries, parked ones that expire, intents
    both          (lane, app, due_at, shard) WHERE as above        the same of one app, where there is too much
    receipt       (parked, due_at, shard) WHERE parked ...         parked ones whose condition was lifted

Keys are read by pages from the indexes (the first ones of all lanes at once: due_pages.py), passing over what is
leased; the rows follow for what is left. Where a lane has more due than may be released, apps take turns: each with
something due gets its share. All of it is one short read transaction on the event loop: nothing can be leased between
the read and what is remembered of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct, field

from waypost.domain.delivery import OpenTarget, Receipt
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.settlement import Change, Unsure
from waypost.domain.time import Instant
from waypost.domain.turns import in_turns, turn_after
from waypost.ports.work import Settled, WorkItem
from waypost.stores.sql.amend import TakeBack
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.due_pages import FIRST, first_pages
from waypost.stores.sql.lease import in_leasing, in_shards
from waypost.stores.sql.rows import (
    NOTIFICATION,
    NOTIFICATION_STATUSES,
    NOTIFICATION_WIDTH,
    RECEIPT,
    WITH_CONTENT,
    notification_of,
    receipt_of,
    select_in,
)
from waypost.stores.sql.units import Leasing

_PAGE = 512

_WHOLE = (
    "SELECT due_at, shard, seq, id FROM notification INDEXED BY notification_due"
    " WHERE lane = ? AND due_at > 0 AND due_at <= ? AND (due_at, shard, seq) > (?, ?, ?){shards}"
    " ORDER BY due_at, shard, seq LIMIT 0 + ?"
)
_DUE = (
    "SELECT due_at, shard, notification_id, n FROM receipt INDEXED BY receipt_due"
    " WHERE lane = ? AND due_at IS NOT NULL AND due_at <= ?"
    " AND (due_at, shard, notification_id, n) > (?, ?, ?, ?){shards}"
    " ORDER BY due_at, shard, notification_id, n LIMIT 0 + ?"
)
_WHOLE_OF_APP = _WHOLE.replace("notification_due", "notification_due_of_app").replace(
    "lane = ?", "lane = ? AND app = ?"
)
_DUE_OF_APP = _DUE.replace("receipt_due", "receipt_due_of_app").replace("lane = ?", "lane = ? AND app = ?")
_LIFTED = (
    "SELECT due_at, shard, notification_id, n FROM receipt INDEXED BY receipt_parked"
    " WHERE parked = ? AND (due_at, shard, notification_id, n) > (?, ?, ?, ?){shards}"
    " ORDER BY due_at, shard, notification_id, n LIMIT 0 + ?"
)
_NOTIFICATIONS = (
    f"SELECT {NOTIFICATION}, withdrawn, status FROM {WITH_CONTENT}"  # noqa: S608 - columns
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

_APPS_OF = """\
WITH RECURSIVE found (app) AS (
    SELECT min(app) FROM counter
    UNION ALL
    SELECT (SELECT min(counter.app) FROM counter WHERE counter.app > found.app) FROM found WHERE app IS NOT NULL
)
SELECT app FROM found WHERE app IS NOT NULL AND EXISTS (SELECT 1 FROM {table} INDEXED BY {table}_due_of_app
    WHERE lane = ? AND {table}.app = found.app AND {is_open} AND due_at >= ? AND due_at <= ?)
"""
"""One step down the index of the counters for each app, which all have, and a look whether something of it is due."""
_APPS_DUE = (
    _APPS_OF.format(table="notification", is_open="due_at > 0"),
    _APPS_OF.format(table="receipt", is_open="due_at IS NOT NULL"),
)
APPS_A_TURN = 50
"""The most apps looked at in one release where there is too much due; the next ones in the next."""

_BEFORE_ROWS = (-1, -1)
_BEFORE_TARGETS = (-1, b"", -1)

_Key = tuple[NotificationId, int | None]
IsTaken = Callable[[NotificationId, int | None], bool]
_Found = dict[NotificationId, set[int | None]]


class Room(Struct, frozen=True):
    """The room in a lane: how much of it may be released."""

    most: int
    """The most released items that wait in memory, all apps together."""
    ready: Mapping[AppId, int]
    """The number of released items, by app."""
    last: AppId
    """The app whose turn was last where apps took turns."""

    @property
    def left(self) -> int:
        """The number that may still be released."""
        return self.most - sum(self.ready.values())


class PromotionRequest(Struct, frozen=True):
    """A request for at most *n* due entries of *leasing*, and what *lifted* allows of those parked by condition."""

    leasing: Leasing
    now: Instant
    n: int
    rooms: Mapping[Lane, Room]
    lifted: Mapping[str, int]
    is_taken: IsTaken
    since: Instant = Instant(0)
    """The time before which nothing open is due."""


class DueWork(Struct):
    """The due work that was found: work to lease, intents to close, withdrawn work to end."""

    items: list[WorkItem] = field(default_factory=list)
    entries: int = 0
    """The entries in *items*: a notification whole, or a target."""
    intents: list[Settled] = field(default_factory=list)
    withdrawn: list[TakeBack] = field(default_factory=list)
    last: dict[Lane, AppId] = field(default_factory=dict)
    """The app whose turn was last, of lanes where apps took turns."""
    newer: list[_Key] = field(default_factory=list)
    """The parts that a newer version has to go on with."""
    is_any: bool = False
    """Whether something is due at all, in anybody's hands or not."""

    def without(self, touched: Collection[NotificationId]) -> DueWork:
        """Drop notifications that changed since it was read; they are found again if they are still due."""
        items = [item for item in self.items if item.notification.id not in touched]
        intents = [one for one in self.intents if one.notification.id not in touched]
        withdrawn = [order for order in self.withdrawn if order.id not in touched]
        return DueWork(items, _entries(items), intents, withdrawn, self.last, self.newer, self.is_any)


def find_due(connection: Connection, wanted: PromotionRequest) -> DueWork:
    """Find what is due, with what to do about it."""
    connection.execute(connection.dialect.snapshot)
    try:
        search = _Search(connection, wanted)
        due = load(connection, search.found) if search.found else DueWork()
        due.last, due.is_any = search.last, search.is_any
        return due
    finally:
        connection.execute("COMMIT")


def parked_under(connection: Connection) -> frozenset[str]:
    """List every condition under which something is parked."""
    return frozenset(row[0] for row in connection.execute(_CONDITIONS).fetchall())


class _Search:
    """A search for the keys of what is due, lane after lane, then of what is lifted."""

    def __init__(self, connection: Connection, wanted: PromotionRequest) -> None:
        self.found: _Found = {}
        self.last: dict[Lane, AppId] = {}
        self._connection = connection
        self._wanted = wanted
        self._left = wanted.n
        self._first = first_pages(connection, wanted.leasing, wanted.now, wanted.since)
        self.is_any = any(whole or due for whole, due in self._first.values())
        for lane, room in wanted.rooms.items():
            self._take(self._due(lane, room))
        parked = [islice(self._parked(condition), most) for condition, most in wanted.lifted.items()]
        self._take(in_turns(self._left, parked))

    def _take(self, keys: Collection[_Key]) -> None:
        for notification_id, part in keys:
            self.found.setdefault(notification_id, set()).add(part)
        self._left -= len(keys)

    def _due(self, lane: Lane, room: Room) -> list[_Key]:
        """Find all that is due in a lane, or as much as may be, apps taking turns."""
        if not any(self._first[lane]):
            return []
        n = max(0, min(room.left, self._left))
        keys = list(islice(self._of_lane(lane), n))
        if self._left <= 0 or len(keys) < n:
            return keys
        apps = apps_due(self._connection, lane, self._wanted.now, room.last, self._wanted.since)
        if len(apps) <= 1:
            return keys
        share, turn = max(1, room.most // len(apps)), apps[: min(APPS_A_TURN, self._left)]
        self.last[lane] = turn[-1]
        return in_turns(
            self._left, [islice(self._of_app(lane, app), max(0, share - room.ready.get(app, 0))) for app in turn]
        )

    def _of_lane(self, lane: Lane) -> Iterator[_Key]:
        whole, due = self._first[lane]
        yield from self._free((key[3], None) for key in self._from_first(_WHOLE, lane, whole, len(_BEFORE_ROWS)))
        yield from self._free((key[2], key[3]) for key in self._from_first(_DUE, lane, due, len(_BEFORE_TARGETS)))

    def _from_first(self, sql: str, lane: Lane, first: Sequence[Row], width: int) -> Iterator[Row]:
        """Yield the keys of an index, whose *first* page is read; *width* is that of a key beside its time."""
        yield from first
        if len(first) == FIRST:
            where = in_shards(self._wanted.leasing.of(lane))
            yield from self._after(first[-1][: width + 1], sql, where, (lane, self._wanted.now))

    def _of_app(self, lane: Lane, app: AppId) -> Iterator[_Key]:
        asked = (lane, app, self._wanted.now)
        where = in_shards(self._wanted.leasing.of(lane))
        yield from self._free((key[3], None) for key in self._pages(_WHOLE_OF_APP, where, asked, _BEFORE_ROWS))
        yield from self._free((key[2], key[3]) for key in self._pages(_DUE_OF_APP, where, asked, _BEFORE_TARGETS))

    def _parked(self, condition: str) -> Iterator[_Key]:
        where = in_leasing(self._wanted.leasing)
        return self._free((key[2], key[3]) for key in self._pages(_LIFTED, where, (condition,), _BEFORE_TARGETS))

    def _free(self, keys: Iterable[_Key]) -> Iterator[_Key]:
        """Yield those that nobody has, and that are not found yet."""
        for notification_id, part in keys:
            if part not in self.found.get(notification_id, ()) and not self._wanted.is_taken(notification_id, part):
                yield notification_id, part

    def _pages(self, sql: str, where: str, asked: tuple[Any, ...], before: tuple[Any, ...]) -> Iterator[Row]:
        """Yield the keys of an index from where work begins, page by page; *before* all of that moment."""
        return self._after((self._wanted.since, *before), sql, where, asked)

    def _after(self, key: tuple[Any, ...], sql: str, where: str, asked: tuple[Any, ...]) -> Iterator[Row]:
        """Yield those after *key*."""
        width, sql = len(key), sql.format(shards=where)
        while True:
            rows = self._connection.execute(sql, (*asked, *key, _PAGE)).fetchall()
            yield from rows
            if len(rows) < _PAGE:
                return
            key = rows[-1][:width]


def apps_due(connection: Connection, lane: Lane, now: Instant, last: AppId, since: Instant) -> list[AppId]:
    """List the apps with something due in *lane* from *since* to *now*, whoever has it, in turn after *last*."""
    found = {row[0] for sql in _APPS_DUE for row in connection.execute(sql, (lane, since, now)).fetchall()}
    return sorted(found, key=turn_after(last))


def load(connection: Connection, found: Mapping[NotificationId, set[int | None]]) -> DueWork:
    """Load the work items of these parts, in this order: target numbers, or None for a notification whole."""
    due = DueWork()
    receipts: dict[NotificationId, list[Receipt]] = {}
    routed = [one for one, parts in found.items() if parts != {None}]
    for row in select_in(connection, _RECEIPTS, routed):
        receipts.setdefault(row[0], []).append(receipt_of(row))
    items: dict[NotificationId, WorkItem] = {}
    for row in select_in(connection, _NOTIFICATIONS, list(found)):
        notification = notification_of(row)
        if row[NOTIFICATION_WIDTH + 1] not in NOTIFICATION_STATUSES:
            due.newer += [(notification.id, part) for part in found[notification.id]]
            continue
        if row[NOTIFICATION_WIDTH] is not None:
            due.withdrawn.append(TakeBack(notification.app, notification.id, row[NOTIFICATION_WIDTH]))
        if row[NOTIFICATION_WIDTH] is None and None in found[notification.id]:
            items[notification.id] = WorkItem(notification, None)
        all_of_it = sorted(receipts.get(notification.id, ()), key=lambda receipt: receipt.n)
        of_this = [each for each in all_of_it if each.n in found[notification.id]]
        over = tuple(_unsure(receipt) for receipt in of_this if receipt.is_intent)
        if over:
            due.intents.append(Settled(notification, over))
        due.newer += [(notification.id, receipt.n) for receipt in of_this if receipt.is_newer]
        waiting = tuple(_open_target(each) for each in of_this if not (each.is_intent or each.is_newer))
        if waiting and row[NOTIFICATION_WIDTH] is None:
            siblings = tuple(each for each in all_of_it if each.n not in found[notification.id])
            items[notification.id] = WorkItem(notification, waiting, siblings=siblings)
    due.items = [items[one] for one in found if one in items]
    due.entries = _entries(due.items)
    return due


def _entries(items: Iterable[WorkItem]) -> int:
    return sum(1 if item.open_targets is None else len(item.open_targets) for item in items)


def _unsure(receipt: Receipt) -> Change:
    """Close an intent without an outcome by its deadline: it may have been sent, and is never sent again."""
    assert receipt.due_at is not None, "an intent has a deadline"
    return Change(receipt.n, receipt.attempt, Unsure(receipt.code or "unanswered"), receipt.due_at)


def _open_target(receipt: Receipt) -> OpenTarget:
    assert receipt.channel is not None, "a target that no channel reaches is never open"
    return OpenTarget(
        receipt.n, receipt.device_id, receipt.channel, receipt.attempt, receipt.retries, receipt.throttles
    )
