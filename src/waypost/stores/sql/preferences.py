"""The preferences of users on SQL: one row of each who has said something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.preferences import NOTHING_SAID, PreferenceChange, Preferences, TypeChoice, changed
from waypost.domain.quiet_hours import Hours
from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.stores.sql.user_changes import erase_user, note_changes

PREFERENCE: Final = AddedTable(
    "preference",
    "CREATE TABLE IF NOT EXISTS preference"
    " (app {text} NOT NULL, user_id {text} NOT NULL, enabled {number} NOT NULL, channels {text} NOT NULL,"
    " types {text} NOT NULL, quiet_start {number}, quiet_end {number}, frequency_limit {number},"
    " changed_at {number} NOT NULL, changed_by {text} NOT NULL, PRIMARY KEY (app, user_id)){layout}",
)
_COLUMNS: Final = "user_id, enabled, channels, types, quiet_start, quiet_end, frequency_limit, changed_at, changed_by"
_PUT: Final = """\
INSERT INTO preference
(app, user_id, enabled, channels, types, quiet_start, quiet_end, frequency_limit, changed_at, changed_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (app, user_id) DO UPDATE
SET enabled = excluded.enabled, channels = excluded.channels, types = excluded.types,
    quiet_start = excluded.quiet_start, quiet_end = excluded.quiet_end, frequency_limit = excluded.frequency_limit,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by
"""
_ERASE: Final = "DELETE FROM preference WHERE app = ? AND user_id = ? AND changed_at <= ?"

_channels: Final = msgspec.json.Decoder(dict[str, bool])
_types: Final = msgspec.json.Decoder(dict[str, TypeChoice])
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Said(Struct, frozen=True):
    """The preferences of a user, and when and by whom they were changed last."""

    preferences: Preferences = NOTHING_SAID
    changed_at: Instant | None = None
    changed_by: str | None = None


class SqlPreferences:
    """The store of preferences. Each method raises Unavailable where the store is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, app: AppId, users: Sequence[UserId]) -> Mapping[UserId, Said]:
        """Return the preferences of those of *users* who have said something."""
        return await self._database.look_up(lambda connection: _said(connection, app, users))

    async def change(self, app: AppId, user_id: UserId, change: PreferenceChange, at: Instant, by: str) -> Said:
        """Change what the user said, and return what it is then; every process counts it from its next batch on."""
        return await self._database.commits.submit(_CHANGING, (app, user_id, change, at, by))

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """Forget what the user said until then."""
        await self._database.commits.submit(_ERASING, (app, user_id, until))


def _said(connection: Connection, app: AppId, users: Sequence[UserId]) -> dict[UserId, Said]:
    asked = f"app = ? AND user_id IN ({', '.join('?' * len(users))})"
    known = f"SELECT {_COLUMNS} FROM preference WHERE {asked}"  # noqa: S608 - columns and question marks
    rows = connection.execute(known, (app, *users)).fetchall() if users else []
    return {row[0]: _of_row(row) for row in rows}


def _of_row(row: Row) -> Said:
    _, enabled, channels, types, start, end, limit, at, by = row
    said = Preferences(
        enabled=bool(enabled),
        channels=_channels.decode(channels),
        types=_types.decode(types),
        quiet_hours=None if start is None else Hours(start, end),
        frequency_limit=limit,
    )
    return Said(said, at, by)


def _change(
    transaction: Transaction, batch: Sequence[tuple[AppId, UserId, PreferenceChange, Instant, str]]
) -> list[Said]:
    note_changes(transaction.connection, [(app, user_id) for app, user_id, *_ in batch])
    return [_change_one(transaction.connection, *each) for each in batch]


def _change_one(
    connection: Connection, app: AppId, user_id: UserId, change: PreferenceChange, at: Instant, by: str
) -> Said:
    said = changed(_said(connection, app, [user_id]).get(user_id, Said()).preferences, change)
    hours = (None, None) if said.quiet_hours is None else (said.quiet_hours.start, said.quiet_hours.end)
    texts = _encode(said.channels).decode(), _encode(said.types).decode()
    connection.execute(_PUT, (app, user_id, int(said.enabled), *texts, *hours, said.frequency_limit, at, by))
    return Said(said, at, by)


def _erase(transaction: Transaction, orders: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    for app, user_id, until in orders:
        erase_user(transaction.connection, (app, user_id), _ERASE, until)
    return [None] * len(orders)


_CHANGING = OperationKind("change_preferences", _change, durable=True)
_ERASING = OperationKind("erase_preferences", _erase, durable=True)
