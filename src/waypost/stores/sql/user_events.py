"""The events of users on SQL: a row for each user, name and day, from which segments are made.

    user_event   how often and when last; by user, and by name and day
    event_slot   how often each event happened, by quarters of an hour
    event_id     the ids of the app's own events, by the day that each is of: a repeat counts once

Who hears of events does so in the transaction that counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.domain.tracked import SLOT_MS, TrackedEvent, day_of
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.rows import upsert_all
from waypost.stores.sql.transaction import OperationKind, Transaction

USER_EVENT: Final = AddedTable(
    "user_event",
    "CREATE TABLE IF NOT EXISTS user_event"
    " (app {text} NOT NULL, user_id {text} NOT NULL, name {text} NOT NULL, day {number} NOT NULL,"
    " count {number} NOT NULL, last_at {number} NOT NULL,"
    " PRIMARY KEY (app, user_id, name, day), UNIQUE (app, name, day, user_id)){layout}",
)
"""``day`` is days since 1970 in UTC; the second key is for who looks for users by what they did."""
EVENT_ID: Final = AddedTable(
    "event_id",
    "CREATE TABLE IF NOT EXISTS event_id (day {number} NOT NULL, id {blob} NOT NULL, PRIMARY KEY (day, id)){layout}",
)
EVENT_SLOT: Final = AddedTable(
    "event_slot",
    "CREATE TABLE IF NOT EXISTS event_slot"
    " (app {text} NOT NULL, name {text} NOT NULL, slot {number} NOT NULL, count {number} NOT NULL,"
    " PRIMARY KEY (app, name, slot)){layout}",
)

_COUNT: Final = "INSERT INTO user_event (app, user_id, name, day, count, last_at) VALUES "
_COUNTED: Final = (
    " ON CONFLICT (app, user_id, name, day) DO UPDATE SET count = user_event.count + excluded.count,"
    " last_at = CASE WHEN excluded.last_at > user_event.last_at THEN excluded.last_at ELSE user_event.last_at END"
)
_ADD_SLOTS: Final = "INSERT INTO event_slot (app, name, slot, count) VALUES "
_SLOTS_ADDED: Final = " ON CONFLICT (app, name, slot) DO UPDATE SET count = event_slot.count + excluded.count"
_CLAIM: Final = "INSERT INTO event_id (day, id) VALUES "
_CLAIMED: Final = " ON CONFLICT (day, id) DO NOTHING RETURNING day, id"
_OF_USER: Final = "SELECT name, day, count, last_at FROM user_event WHERE app = ? AND user_id = ? AND day >= ?"
ERASE_EVENTS: Final = "DELETE FROM user_event WHERE app = ? AND user_id = ?"
_DROP: Final = (
    "DELETE FROM user_event WHERE (app, user_id, name, day) IN"
    " (SELECT app, user_id, name, day FROM user_event WHERE app = ? AND name = ? AND day < ? LIMIT ?)"
)

Hears = Callable[[Transaction, Sequence[TrackedEvent]], None]
"""Writes, in the transaction that counts events, what follows from them."""


class UserEventCount(Struct, frozen=True):
    """The events of one name that a user had on one day."""

    name: str
    day: int
    count: int
    last_at: Instant


class _Batch(Struct, frozen=True):
    events: Sequence[TrackedEvent]
    hears: Sequence[Hears]


class SqlUserEvents:
    """The record of what users did."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def track(self, events: Sequence[TrackedEvent], hears: Sequence[Hears] = ()) -> int:
        """Count *events*, each id once, and let *hears* write what follows; return how many were new."""
        batch = _Batch(events, hears)
        return await self._database.commits.submit(_TRACKING, batch, rows=len(events)) if events else 0

    async def of(self, app: AppId, user_id: UserId, since_day: int = 0) -> list[UserEventCount]:
        """Return what a user did since a day."""
        key = app, user_id, since_day
        rows = await self._database.read(lambda connection: connection.execute(_OF_USER, key).fetchall())
        return [UserEventCount(*row) for row in rows]


def count_events(connection: Connection, events: Sequence[TrackedEvent]) -> None:
    """Count *events* for their users and by their time, in one order for all who write at the same time."""
    counts: dict[tuple[str, str, str, int], tuple[int, Instant]] = {}
    for each in events:
        key = each.app, each.user_id, each.name, day_of(each.at)
        n, last_at = counts.get(key, (0, each.at))
        counts[key] = n + 1, max(last_at, each.at)
    rows = [(*key, n, last_at) for key, (n, last_at) in sorted(counts.items())]
    upsert_all(connection, _COUNT, "(?, ?, ?, ?, ?, ?)", _COUNTED, rows)
    slots = Counter((each.app, each.name, each.at // SLOT_MS) for each in events)
    upsert_all(connection, _ADD_SLOTS, "(?, ?, ?, ?)", _SLOTS_ADDED, [(*key, n) for key, n in sorted(slots.items())])


def _track(transaction: Transaction, batches: Sequence[_Batch]) -> list[int]:
    connection = transaction.connection
    claims = {(day_of(it.at), it.key) for batch in batches for it in batch.events if it.key is not None}
    mine = {(day, bytes(key)) for day, key in upsert_all(connection, _CLAIM, "(?, ?)", _CLAIMED, sorted(claims))}
    fresh: list[TrackedEvent] = []
    counts: list[int] = []
    for batch in batches:
        before = len(fresh)
        for each in batch.events:
            if each.key is None:
                fresh.append(each)
            elif (claim := (day_of(each.at), each.key)) in mine:
                mine.remove(claim)
                fresh.append(each)
        counts.append(len(fresh) - before)
        for hears in batch.hears:
            hears(transaction, fresh[before:])
    count_events(connection, fresh)
    return counts


_TRACKING: Final = OperationKind("track_events", _track, durable=True)
