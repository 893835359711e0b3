"""Our own topics on SQL, and who hears them.

topic          one row each, with a number of its own: one that is made again begins without members
topic_member   by user, for what one hears and for erasure; by topic, to be walked in the order of users
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, UserId
from waypost.domain.time import Instant
from waypost.ports.topics import Topic
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.rows import seqs
from waypost.stores.sql.transaction import OperationKind, Transaction

TOPIC: Final = AddedTable(
    "topic",
    "CREATE TABLE IF NOT EXISTS topic"
    " (app {text} NOT NULL, name {text} NOT NULL, number {number} NOT NULL, description {text} NOT NULL,"
    " open {number} NOT NULL, created_at {number} NOT NULL, PRIMARY KEY (app, name), UNIQUE (number)){layout}",
)
MEMBER: Final = AddedTable(
    "topic_member",
    "CREATE TABLE IF NOT EXISTS topic_member"
    " (app {text} NOT NULL, user_id {text} NOT NULL, topic {number} NOT NULL, at {number} NOT NULL,"
    " PRIMARY KEY (app, user_id, topic), UNIQUE (topic, user_id)){layout}",
)
_COLUMNS: Final = "name, number, description, open, created_at"
_FIND: Final = f"SELECT {_COLUMNS} FROM topic WHERE app = ? AND name = ?"  # noqa: S608 - a list of columns
_LIST: Final = f"SELECT {_COLUMNS} FROM topic WHERE app = ? AND name > ? ORDER BY name LIMIT ?"  # noqa: S608 - as above
_PUT: Final = """\
INSERT INTO topic (app, name, number, description, open, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (app, name) DO UPDATE SET description = excluded.description, open = excluded.open
"""
_REMOVE: Final = "DELETE FROM topic WHERE app = ? AND name = ?"
_ADD: Final = """\
INSERT INTO topic_member (app, user_id, topic, at) SELECT app, ?, number, ? FROM topic WHERE app = ? AND name = ?
ON CONFLICT DO NOTHING
"""
_TAKE: Final = (
    "DELETE FROM topic_member WHERE app = ? AND user_id = ?"
    " AND topic = (SELECT number FROM topic WHERE app = ? AND name = ?)"
)
_HEARD: Final = (
    "SELECT topic.name FROM topic_member JOIN topic ON topic.number = topic_member.topic"
    " WHERE topic_member.app = ? AND user_id = ? ORDER BY topic.name"
)
_COUNT: Final = "SELECT count(*) FROM topic_member WHERE topic = ?"
_MEMBERS: Final = "SELECT user_id FROM topic_member WHERE topic = ? AND user_id > ? ORDER BY user_id LIMIT ?"
_ERASE: Final = "DELETE FROM topic_member WHERE app = ? AND user_id = ? AND at <= ?"
_NEXT: Final = "SELECT topic FROM topic_member WHERE topic > ? ORDER BY topic LIMIT 1"
_HAS: Final = "SELECT 1 FROM topic WHERE number = ?"
_DROP: Final = (
    "DELETE FROM topic_member WHERE (app, user_id, topic) IN"
    " (SELECT app, user_id, topic FROM topic_member WHERE topic = ? LIMIT ?)"
)


class SqlTopics:
    """See ports.topics.Topics."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, app: AppId, name: str, description: str, *, is_open: bool, at: Instant) -> bool:
        """See Topics."""
        return await self._database.commits.submit(_PUTTING, _New(app, name, description, is_open, at))

    async def find(self, app: AppId, name: str) -> Topic | None:
        """See Topics."""
        return await self._database.read(lambda connection: _find(connection, app, name))

    async def page(self, app: AppId, after: str, n: int) -> list[Topic]:
        """See Topics."""
        return await self._database.read(
            lambda connection: [_topic(*row) for row in connection.execute(_LIST, (app, after, n)).fetchall()]
        )

    async def remove(self, app: AppId, name: str) -> bool:
        """See Topics."""
        return await self._database.commits.submit(_REMOVING, (app, name))

    async def change(self, app: AppId, name: str, add: Sequence[UserId], take: Sequence[UserId], at: Instant) -> bool:
        """See Topics."""
        change = _Change(app, name, tuple(add), tuple(take), at)
        return await self._database.commits.submit(_CHANGING, change, rows=len(add) + len(take))

    async def heard_by(self, app: AppId, user_id: UserId) -> list[str]:
        """See Topics."""
        key = app, user_id
        rows = await self._database.read(lambda connection: connection.execute(_HEARD, key).fetchall())
        return [name for (name,) in rows]

    async def count(self, topic: Topic) -> int:
        """See Topics."""
        key = (topic.number,)
        counted: int = (await self._database.read(lambda connection: connection.execute(_COUNT, key).fetchone()))[0]
        return counted

    async def members(self, topic: Topic, after: str, n: int) -> list[UserId]:
        """See Topics."""
        page = topic.number, after, n
        rows = await self._database.read(lambda connection: connection.execute(_MEMBERS, page).fetchall())
        return [user_id for (user_id,) in rows]

    async def erase(self, app: AppId, user_id: UserId, until: Instant) -> None:
        """See Topics."""
        await self._database.commits.submit(_ERASING, (app, user_id, until))

    async def drop(self, page: int) -> int:
        """See Topics."""
        number = await self._database.read(_without_topic)
        return 0 if number is None else await self._database.commits.submit(_DROPPING, (number, page))


class _New(Struct, frozen=True):
    app: AppId
    name: str
    description: str
    is_open: bool
    at: Instant


class _Change(Struct, frozen=True):
    app: AppId
    name: str
    add: tuple[UserId, ...]
    take: tuple[UserId, ...]
    at: Instant


def _topic(name: str, number: int, description: str, is_open: int, created_at: Instant) -> Topic:
    return Topic(name, number, description, bool(is_open), created_at)


def _find(connection: Connection, app: AppId, name: str) -> Topic | None:
    row = connection.execute(_FIND, (app, name)).fetchone()
    return None if row is None else _topic(*row)


def _put(transaction: Transaction, batch: Sequence[_New]) -> list[bool]:
    return [_put_one(transaction.connection, each) for each in batch]


def _put_one(connection: Connection, new: _New) -> bool:
    known = _find(connection, new.app, new.name)
    number = known.number if known is not None else seqs(connection, 1)[0]
    connection.execute(_PUT, (new.app, new.name, number, new.description, int(new.is_open), new.at))
    return known is None


def _remove(transaction: Transaction, keys: Sequence[tuple[AppId, str]]) -> list[bool]:
    return [transaction.connection.execute(_REMOVE, key).rowcount > 0 for key in keys]


def _change(transaction: Transaction, changes: Sequence[_Change]) -> list[bool]:
    return [_change_one(transaction.connection, each) for each in changes]


def _change_one(connection: Connection, change: _Change) -> bool:
    named = change.app, change.name
    if _find(connection, *named) is None:
        return False
    if change.take:
        connection.executemany(_TAKE, [(change.app, user_id, *named) for user_id in sorted(change.take)])
    if change.add:
        connection.executemany(_ADD, [(user_id, change.at, *named) for user_id in sorted(change.add)])
    return True


def _erase(transaction: Transaction, orders: Sequence[tuple[AppId, UserId, Instant]]) -> list[None]:
    transaction.connection.executemany(_ERASE, orders)
    return [None] * len(orders)


def _without_topic(connection: Connection) -> int | None:
    """Find the number of a topic that was removed and still has members."""
    number: int = -1
    while (row := connection.execute(_NEXT, (number,)).fetchone()) is not None:
        number = row[0]
        if connection.execute(_HAS, (number,)).fetchone() is None:
            return number
    return None


def _drop(transaction: Transaction, pages: Sequence[tuple[int, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP, page).rowcount for page in pages]


_PUTTING = OperationKind("put_topic", _put, durable=True)
_REMOVING = OperationKind("remove_topic", _remove, durable=True)
_CHANGING = OperationKind("change_topic", _change, durable=True)
_ERASING = OperationKind("erase_topics", _erase, durable=True)
_DROPPING = OperationKind("drop_topic_members", _drop, durable=False, patient=True)
