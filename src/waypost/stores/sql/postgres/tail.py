"""Leasing fresh work where many accept at once: numbers are not in commit order, and nobody waits for anybody.

    arrival   one row for each commit that made rows leasable: its transaction, their numbers, and which lanes and apps

A look at ``arrival`` asks for the transactions that the snapshot of the look before did not see: those that were open
then, by name, and all that came after. So each commit is heard of once, however late it ends and whatever else is open
meanwhile, here or in another database: nothing waits for a horizon. The cursor of a (lane, app) goes back to the first
number of what is heard of, passes over what is leased, and never begins behind what was finished long ago; so what a
read costs does not grow with the rows that vacuum may not take away while somebody has a snapshot.

    tail      where one tail stood: the snapshot of its look, and the number before the first fresh row of each app

Whoever begins does so from there (fresh_from.py): of the commits that snapshot saw, nothing that is fresh lies before,
and it hears of all others. That holds while none of those may have been dropped from ``arrival``, and on the very run
of the server that the snapshot is of. Otherwise it reads the index of what is fresh from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import NewNotification, WorkItem
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.lease import READ, apps_with_fresh_rows, in_shards
from waypost.stores.sql.postgres.connection import Numbers, Texts
from waypost.stores.sql.reached import ARRIVALS_DROPPED, reached
from waypost.stores.sql.rows import NOTIFICATION_WIDTH, notification_of
from waypost.stores.sql.units import Leasing

SILENT_S: Final = 60.0
"""Seconds after which whoever has not looked begins again: what all others heard of may have been dropped."""

_INSERT = "INSERT INTO arrival (first_seq, last_seq, fresh) VALUES (?, ?, ?)"
_LOOK = """\
SELECT CAST(pg_current_snapshot() AS text), (SELECT value FROM sequence WHERE name = 'notification'),
    CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) << 20, first_seq, last_seq, fresh
FROM (SELECT 1) AS once LEFT JOIN LATERAL (
    SELECT first_seq, last_seq, fresh FROM arrival WHERE tx >= ?
    UNION ALL SELECT first_seq, last_seq, fresh FROM arrival WHERE tx = ANY(?)
) AS news ON true
"""
_DEPTH = """\
SELECT asked.app, (
    SELECT seq FROM notification WHERE lane = ?1 AND app = asked.app AND due_at = 0 AND seq > floor ORDER BY seq LIMIT 1
), (
    SELECT count(*) FROM (SELECT 1 FROM notification
        WHERE lane = ?1 AND app = asked.app AND due_at = 0 AND seq > floor{shards} LIMIT ?4) AS fresh
) FROM unnest(?2, ?3) AS asked (app, floor)
"""
_RECORDED = """\
SELECT CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint),
    (SELECT place FROM tail WHERE name = 'fresh')
"""
_FIRST = """\
SELECT asked.lane, asked.app, (
    SELECT {column} FROM notification WHERE lane = asked.lane AND app = asked.app AND due_at = 0 AND seq > floor
    ORDER BY seq LIMIT 1
) FROM unnest(?, ?, ?) AS asked (lane, app, floor)
"""
_NOTHING = 1 << 62

_Key = tuple[Lane, AppId]
_fresh = msgspec.json.Decoder(list[_Key]).decode


class TransactionSnapshot(Struct, frozen=True):
    """The transactions that a look saw: all before *end* but the *open* ones."""

    end: int
    open: tuple[int, ...]

    @classmethod
    def of(cls, snapshot: str) -> TransactionSnapshot:
        """Parse the server's text (PostgreSQL, table 9.82: xmin:xmax:xip_list)."""
        _, end, still_open = snapshot.split(":")
        return cls(int(end), tuple(map(int, still_open.split(","))) if still_open else ())

    @property
    def first_unseen(self) -> int:
        """The first transaction that it did not see."""
        return min((*self.open, self.end))


class TailPlace(Struct, frozen=True):
    """The place where a tail stood after a look, on a server that started when *server* says, in microseconds."""

    server: int
    seen: TransactionSnapshot
    of_before: int
    floors: tuple[tuple[Lane, AppId, int], ...]
    """The number before the first fresh row, of each that has one: of all others nothing that was seen is fresh."""


_place = msgspec.json.Decoder(TailPlace).decode


class ArrivalTail:
    """A search for fresh rows of the shards given, each once (fulfils engine.Tail)."""

    def __init__(self) -> None:
        self._floors: dict[_Key, int] = {}
        """The numbers before which nothing is fresh, of any shard."""
        self._cursors: dict[_Key, int] = {}
        self._heads: dict[_Key, int] = {}
        """The last number of each that was heard of."""
        self._head = 0
        """The number that had been given out when it began."""
        self._apps: dict[Lane, set[AppId]] = {lane: set() for lane in Lane}
        self._seen: TransactionSnapshot | None = None
        self._looked_s = 0.0
        self._asked: Connection | None = None
        self._server = 0
        self._of_before = 0
        """The last number that workers of the version before gave out."""
        self._read = dict.fromkeys(Lane, READ)
        self._depth = dict.fromkeys(Lane, _DEPTH)

    def note(self, connection: Connection, arrivals: Sequence[NewNotification], numbers: Sequence[int]) -> None:
        """Write what this commit makes leasable."""
        fresh = sorted({(arrival.notification.lane._value_, arrival.notification.app) for arrival in arrivals})
        connection.execute(_INSERT, (numbers[0], numbers[-1], msgspec.json.encode(fresh).decode()))

    def start_over(self, leasing: Leasing) -> None:
        """Begin at the first open row, with these shards; which apps there are is known."""
        self._cursors = dict(self._floors)
        for lane, app in self._floors:
            self._apps[lane].add(app)
        self._read = {lane: READ.format(shards=in_shards(leasing.of(lane))) for lane in Lane}
        self._depth = {lane: _DEPTH.format(shards=in_shards(leasing.of(lane))) for lane in Lane}

    def apps(self, connection: Connection, lane: Lane) -> set[AppId]:
        """Return the apps that may have fresh rows of *lane* after their cursors."""
        self._catch_up(connection)
        return self._apps[lane]

    def _catch_up(self, connection: Connection) -> TransactionSnapshot:
        """Hear of all that is committed by now; return what it saw."""
        if self._seen is None or connection is not self._asked or _now_s() - self._looked_s > SILENT_S:
            return self._begin(connection)
        return self._look(connection, self._seen)

    def _begin(self, connection: Connection) -> TransactionSnapshot:
        """See all there is; another server may have come after the one that was asked before."""
        self._seen = None  # what another server's snapshot saw says nothing of this one's transactions
        self._asked, self._looked_s = connection, _now_s()
        snapshot, self._of_before, self._head, *_ = connection.execute(_LOOK, (_NOTHING, Numbers())).fetchone()
        self._server, said = connection.execute(_RECORDED).fetchone()
        place = _place_in(said)
        if place is not None and place.server == self._server:
            seen = self._begin_at(connection, place)
            self._seen = None  # until it is known that nothing was missed
            if reached(connection, ARRIVALS_DROPPED) <= place.seen.first_unseen:
                self._seen = seen
                return seen
        keys = [(lane, AppId(app)) for lane in Lane for app in apps_with_fresh_rows(connection, lane)]
        self._stand_at(dict.fromkeys(keys, 0))
        self._seen = TransactionSnapshot.of(snapshot)
        return self._seen

    def _begin_at(self, connection: Connection, place: TailPlace) -> TransactionSnapshot:
        """Begin where another stood, and hear of what it had not seen."""
        self._stand_at({(lane, app): floor for lane, app, floor in place.floors})
        self._of_before = place.of_before
        return self._look(connection, place.seen)

    def _stand_at(self, floors: dict[_Key, int]) -> None:
        """Stand before the first of what is fresh, having heard of nothing that came later."""
        self._heads.clear()
        self._floors, self._cursors = floors, dict(floors)
        self._apps = {lane: {app for of, app in floors if of is lane} for lane in Lane}

    def _look(self, connection: Connection, seen: TransactionSnapshot) -> TransactionSnapshot:
        """Read what was committed since."""
        looked_s = _now_s()
        rows = connection.execute(_LOOK, (seen.end, Numbers(seen.open))).fetchall()
        for _, _, _, first, last, fresh in rows if rows[0][3] is not None else ():
            for key in _fresh(fresh):
                self._apps[key[0]].add(key[1])
                self._heads[key] = max(last, self._heads.get(key, 0))
                for at in (self._cursors, self._floors):
                    at[key] = min(first - 1, at.get(key, first))
        self._seen, self._looked_s = TransactionSnapshot.of(rows[0][0]), looked_s
        if rows[0][1] != self._of_before:
            self._go_back(connection, self._of_before)
            self._of_before = rows[0][1]
        return self._seen

    def _go_back(self, connection: Connection, after: int) -> None:
        """Go back to what a worker of the version before accepted without saying so in ``arrival``."""
        for lane in Lane:
            self._apps[lane] |= set(apps_with_fresh_rows(connection, lane))
        for key in [(lane, app) for lane, apps in self._apps.items() for app in apps]:
            for at in (self._cursors, self._floors):
                at[key] = min(after, at.get(key, after))

    def read(
        self, connection: Connection, lane: Lane, app: AppId, n: int, is_taken: Callable[[NotificationId], bool]
    ) -> list[tuple[WorkItem, int]]:
        """Read at most *n* rows with their shards, passing over what is taken."""
        key = (lane, app)
        found: list[tuple[WorkItem, int]] = []
        while len(found) < n and app in self._apps[lane]:
            asked = n - len(found)
            cursor = self._cursors[key]
            rows = connection.execute(self._read[lane], (lane, app, cursor, asked)).fetchall()
            free = (row for row in rows if not is_taken(row[0]))
            found += [(WorkItem(notification_of(row), None), row[NOTIFICATION_WIDTH + 1]) for row in free]
            last = rows[-1][NOTIFICATION_WIDTH] if rows else 0
            if len(rows) == asked:
                self._cursors[key] = last
            else:  # all that was heard of has been seen
                self._cursors[key] = max(cursor, last, self._head, self._heads.get(key, 0))
                self._apps[lane].discard(app)
        return found

    def depth(self, connection: Connection, lane: Lane, most: int) -> int:
        """Count the fresh rows, leased or not, up to *most*."""
        self.apps(connection, lane)
        floors = {app: floor for (of, app), floor in self._floors.items() if of is lane}
        asked = (lane, Texts(floors), Numbers(floors.values()), most)
        rows = connection.execute(self._depth[lane], asked).fetchall() if floors else []
        for app, first, _ in rows:
            self._rise((lane, app), first)
        counted: int = sum(row[2] for row in rows)
        return min(most, counted)

    def _rise(self, key: _Key, first: int | None) -> None:
        """Take the floor up to the first fresh row that was found, or past all that was heard of."""
        self._floors[key] = max(self._head, self._heads.get(key, 0)) if first is None else first - 1

    def place(self, connection: Connection) -> str:
        """See Tail."""
        seen = self._catch_up(connection)
        found = self._first(connection, "seq")
        for key, first in found.items():
            self._rise(key, first)
        floors = tuple((lane, app, first - 1) for (lane, app), first in found.items() if first is not None)
        return msgspec.json.encode(TailPlace(self._server, seen, self._of_before, floors)).decode()

    def oldest(self, connection: Connection) -> dict[tuple[Lane, AppId], Instant]:
        """See Tail: one statement, and one step down the index for each lane and app, from its floor."""
        found = self._first(connection, "created_at")
        return {key: Instant(at) for key, at in found.items() if at is not None}

    def _first(self, connection: Connection, column: str) -> dict[_Key, int | None]:
        """Read *column* of the first fresh row of each lane and app."""
        lanes, apps = Texts(lane for lane, _ in self._floors), Texts(app for _, app in self._floors)
        asked = (lanes, apps, Numbers(self._floors.values()))
        rows = connection.execute(_FIRST.format(column=column), asked).fetchall() if self._floors else []
        return {(Lane(lane), AppId(app)): value for lane, app, value in rows}


def _place_in(said: str | None) -> TailPlace | None:
    """Read the place that was recorded last, if any was; None for one that a newer version wrote in another way."""
    try:
        return None if said is None else _place(said)
    except msgspec.MsgspecError:
        return None


def _now_s() -> float:
    """Read a clock that goes on while the machine sleeps, in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
