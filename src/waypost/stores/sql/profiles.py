"""The profiles of users on SQL: one row a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import ATTRIBUTES_LIMIT, NOBODY, Attribute, Profile, ProfileChange, changed
from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.stores.sql.user_changes import erase_user, lock_changes, note_changes

PROFILE: Final = AddedTable(
    "user_profile",
    "CREATE TABLE IF NOT EXISTS user_profile"
    " (app {text} NOT NULL, user_id {text} NOT NULL, locale {text}, time_zone {text}, attributes {text} NOT NULL,"
    " changed_at {number} NOT NULL, PRIMARY KEY (app, user_id)){layout}",
)
_HAS: Final = "SELECT 1 FROM user_profile WHERE app = ? AND user_id = ?"
_PUT: Final = """\
INSERT INTO user_profile (app, user_id, locale, time_zone, attributes, changed_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (app, user_id) DO UPDATE
SET locale = excluded.locale, time_zone = excluded.time_zone, attributes = excluded.attributes,
    changed_at = excluded.changed_at
"""
_ERASE: Final = "DELETE FROM user_profile WHERE app = ? AND user_id = ? AND changed_at <= ?"

_attributes: Final = msgspec.json.Decoder(dict[str, Attribute])
_encode: Final = msgspec.json.Encoder().encode


class SqlProfiles:
    """See ports.profiles.Profiles."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, app: AppId, users: Sequence[UserId]) -> dict[UserId, Profile]:
        """See Profiles."""
        return await self._database.read(lambda connection: _profiles(connection, app, users))

    async def put(self, app: AppId, user_id: UserId, profile: Profile, at: Instant) -> bool:
        """See Profiles."""
        return await self._database.commits.submit(_PUTTING, (app, user_id, profile, at))

    async def change(self, app: AppId, user_id: UserId, change: ProfileChange, at: Instant) -> Profile | None:
        """See Profiles."""
        return await self._database.commits.submit(_CHANGING, (app, user_id, change, at))

    async def change_many(self, app: AppId, changes: Sequence[tuple[UserId, ProfileChange]], at: Instant) -> list[int]:
        """See Profiles."""
        many = app, tuple(changes), at
        return await self._database.commits.submit(_CHANGING_MANY, many, rows=len(changes)) if changes else []

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Profiles."""
        await self._database.commits.submit(_ERASING, (app, user_id, until))


def _profiles(connection: Connection, app: AppId, users: Sequence[UserId]) -> dict[UserId, Profile]:
    asked = f"app = ? AND user_id IN ({', '.join('?' * len(users))})"
    known = f"SELECT user_id, locale, time_zone, attributes FROM user_profile WHERE {asked}"  # noqa: S608 - question marks
    rows = connection.execute(known, (app, *users)).fetchall() if users else []
    return {
        user: Profile(locale=locale, time_zone=zone, attributes=_attributes.decode(said))
        for user, locale, zone, said in rows
    }


def _put(transaction: Transaction, batch: Sequence[tuple[AppId, UserId, Profile, Instant]]) -> list[bool]:
    note_changes(transaction.connection, [(app, user_id) for app, user_id, *_ in batch])
    return [_put_one(transaction.connection, *each) for each in batch]


def _put_one(connection: Connection, app: AppId, user_id: UserId, profile: Profile, at: Instant) -> bool:
    is_new = connection.execute(_HAS, (app, user_id)).fetchone() is None
    said = _encode(profile.attributes).decode()
    connection.execute(_PUT, (app, user_id, profile.locale, profile.time_zone, said, at))
    return is_new


def _change(
    transaction: Transaction, batch: Sequence[tuple[AppId, UserId, ProfileChange, Instant]]
) -> list[Profile | None]:
    note_changes(transaction.connection, [(app, user_id) for app, user_id, *_ in batch])
    return [_change_one(transaction.connection, *each) for each in batch]


def _change_one(
    connection: Connection, app: AppId, user_id: UserId, change: ProfileChange, at: Instant
) -> Profile | None:
    profile = changed(_profiles(connection, app, [user_id]).get(user_id, NOBODY), change)
    if len(profile.attributes) > ATTRIBUTES_LIMIT:
        return None
    _put_one(connection, app, user_id, profile, at)
    return profile


def _change_many(
    transaction: Transaction, batch: Sequence[tuple[AppId, Sequence[tuple[UserId, ProfileChange]], Instant]]
) -> list[list[int]]:
    lock_changes(transaction.connection)
    return [_change_page(transaction.connection, *each) for each in batch]


def _change_page(
    connection: Connection, app: AppId, changes: Sequence[tuple[UserId, ProfileChange]], at: Instant
) -> list[int]:
    """Read the profiles of a page at once, and write those that changed at once, in the order of their keys."""
    users = {user for user, _ in changes}
    before = _profiles(connection, app, sorted(users))
    now = dict(before)
    refused: list[int] = []
    for n, (user, change) in enumerate(changes):
        profile = changed(now.get(user, NOBODY), change)
        if len(profile.attributes) > ATTRIBUTES_LIMIT:
            refused.append(n)
        else:
            now[user] = profile
    moved = [user for user, each in sorted(now.items()) if each.time_zone != before.get(user, NOBODY).time_zone]
    if moved:
        note_changes(connection, [(app, user) for user in moved])
    rows = [
        (app, user, each.locale, each.time_zone, _encode(each.attributes).decode(), at)
        for user, each in sorted(now.items())
    ]
    connection.executemany(_PUT, rows)
    return refused


def _erase(transaction: Transaction, orders: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    for app, user_id, until in orders:
        erase_user(transaction.connection, (app, user_id), _ERASE, until)
    return [None] * len(orders)


_PUTTING = OperationKind("put_profile", _put, durable=True)
_CHANGING = OperationKind("change_profile", _change, durable=True)
_CHANGING_MANY = OperationKind("change_profiles", _change_many, durable=True)
_ERASING = OperationKind("erase_profile", _erase, durable=True)
