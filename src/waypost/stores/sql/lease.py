"""Leasing fresh work where one process writes at a time: a tail over the index (lane, app, seq) WHERE due_at = 0.

Rows come in commit order, since *seq* is given out under the write lock; so a cursor for each (lane, app) never passes
a row that appears later. Shards of other processes are skipped inside the index. What lies behind a cursor is leased,
or was given back and waits in memory; after a change of shards every cursor starts again, and what is held is skipped.

It reads on the event loop: 200 rows are some 1 ms, mostly spent making Python objects, which a thread would do under
the same interpreter lock; and nothing can be leased twice between a read and what is remembered of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waypost.domain.ids import SHARDS, AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification, WorkItem
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.rows import NOTIFICATION, NOTIFICATION_WIDTH, notification_of
from waypost.stores.sql.units import Leasing

_HEAD = "SELECT value FROM sequence WHERE name = 'notification'"
_NEXT_APP = (
    "SELECT app FROM notification INDEXED BY notification_fresh"
    " WHERE lane = ?1 AND due_at = 0 AND app > {} ORDER BY app LIMIT 1"
)
_APPS = (  # noqa: S608 - statements of ours
    "WITH RECURSIVE found (app) AS (SELECT ({}) UNION ALL SELECT ({}) FROM found WHERE app IS NOT NULL)"
    " SELECT app FROM found WHERE app IS NOT NULL"
).format(*map(_NEXT_APP.format, ("''", "found.app")))
"""One step down the index for each app."""
READ = (
    f"SELECT {NOTIFICATION}, notification.seq, shard FROM notification INDEXED BY notification_fresh"  # noqa: S608 - columns, shards
    " CROSS JOIN content ON content.seq = notification.seq"
    " WHERE lane = ? AND app = ? AND due_at = 0 AND notification.seq > ?{shards}"
    " AND status = 'pending' ORDER BY notification.seq LIMIT 0 + ?"
)
_DEPTH = (
    "SELECT count(*) FROM (SELECT 1 FROM notification INDEXED BY notification_fresh"
    " WHERE lane = ? AND due_at = 0{shards} LIMIT 0 + ?) AS fresh"
)

_OLDEST = (
    "SELECT created_at FROM notification INDEXED BY notification_fresh"
    " WHERE lane = ? AND app = ? AND due_at = 0 ORDER BY seq LIMIT 1"
)

_NO_SHARD = -1
"""The number of no shard: for an empty list SQLite finds no plan on the index named."""

_OPEN = "SELECT CAST(coalesce(sum(delta), 0) AS BIGINT) FROM counter WHERE lane = ? AND status = 'pending'"


def in_shards(shards: frozenset[int]) -> str:
    """Build the condition that a row belongs to *shards*."""
    if len(shards) == SHARDS:
        return f" AND +shard < {SHARDS}"  # beyond are rows that the ledger keeps of the log
    numbers = [_NO_SHARD, *sorted(shards)]
    return f" AND +shard IN ({','.join(map(str, numbers))})"  # the + makes it a filter, not an index search


class FreshTail:
    """A search for fresh rows of the shards given, each once, with one writer at a time (fulfils engine.Tail)."""

    def __init__(self) -> None:
        self._cursors: dict[tuple[Lane, AppId], int] = {}
        self._apps: dict[Lane, set[AppId]] = {lane: set() for lane in Lane}
        self._seen: dict[Lane, int] = {}
        """The last number given when apps were looked for."""
        self._read = dict.fromkeys(Lane, READ)
        self._depth = dict.fromkeys(Lane, _DEPTH)

    def note(self, connection: Connection, arrivals: Sequence[NewNotification], numbers: Sequence[int]) -> None:
        """Ignore arrivals: their numbers are in the order of commits, that is all that is needed."""

    def start_over(self, leasing: Leasing) -> None:
        """Begin at the first open row, with these shards."""
        self._cursors.clear()
        self._seen.clear()
        self._read = {lane: READ.format(shards=in_shards(leasing.of(lane))) for lane in Lane}
        self._depth = {lane: _DEPTH.format(shards=in_shards(leasing.of(lane))) for lane in Lane}

    def apps(self, connection: Connection, lane: Lane) -> set[AppId]:
        """Return the apps that may have fresh rows of *lane* after their cursors."""
        head: int = connection.execute(_HEAD).fetchone()[0]
        if self._seen.get(lane) != head:
            self._seen[lane] = head
            self._apps[lane] = set(apps_with_fresh_rows(connection, lane))
        return self._apps[lane]

    def read(
        self, connection: Connection, lane: Lane, app: AppId, n: int, is_taken: Callable[[NotificationId], bool]
    ) -> list[tuple[WorkItem, int]]:
        """Read at most *n* rows with their shards, passing over what is taken."""
        found: list[tuple[WorkItem, int]] = []
        head = self._seen.get(lane, 0)
        while len(found) < n and app in self._apps[lane]:
            asked = n - len(found)
            cursor = self._cursors.get((lane, app), 0)
            rows = connection.execute(self._read[lane], (lane, app, cursor, asked)).fetchall()
            free = (row for row in rows if not is_taken(row[0]))
            found += [(WorkItem(notification_of(row), None), row[NOTIFICATION_WIDTH + 1]) for row in free]
            if len(rows) == asked:
                self._cursors[lane, app] = rows[-1][NOTIFICATION_WIDTH]
            else:  # all up to the head, as it was when apps were looked for, has been seen
                last = rows[-1][NOTIFICATION_WIDTH] if rows else 0
                self._cursors[lane, app] = max(cursor, head, last)
                self._apps[lane].discard(app)
        return found

    def depth(self, connection: Connection, lane: Lane, most: int) -> int:
        """Count the fresh rows, leased or not, up to *most*."""
        row: tuple[int] = connection.execute(self._depth[lane], (lane, most)).fetchone()
        return row[0]

    def place(self, connection: Connection) -> str:
        """Refuse: a read from the beginning costs nothing here, since nobody keeps what is gone in its index."""
        raise NotImplementedError

    def oldest(self, connection: Connection) -> dict[tuple[Lane, AppId], Instant]:
        """See Tail."""
        return oldest_fresh(connection)


def in_leasing(leasing: Leasing) -> str:
    """Build the condition that a row, of any lane, is leased from."""
    if leasing.critical == leasing.others:
        return in_shards(leasing.others)
    critical, others = (in_shards(shards).removeprefix(" AND ") for shards in (leasing.critical, leasing.others))
    return f" AND CASE lane WHEN '{Lane.CRITICAL}' THEN {critical} ELSE {others} END"


def open_in(connection: Connection, lane: Lane) -> int:
    """Count the notifications of *lane* that are not final, by the counters: all of them are read, so in a thread."""
    row: tuple[int] = connection.execute(_OPEN, (lane,)).fetchone()
    return row[0]


def oldest_fresh(connection: Connection) -> dict[tuple[Lane, AppId], Instant]:
    """Read when the oldest of each lane and app was accepted that nobody took yet: two steps down the index for each.

    On PostgreSQL the index has what was taken since the last vacuum: a look, and not for every few seconds.
    """
    apps = [(lane, app) for lane in Lane for app in apps_with_fresh_rows(connection, lane)]
    return {key: Instant(connection.execute(_OLDEST, key).fetchone()[0]) for key in apps}


def apps_with_fresh_rows(connection: Connection, lane: Lane) -> list[AppId]:
    """List the apps with fresh rows."""
    return [row[0] for row in connection.execute(_APPS, (lane,)).fetchall()]
