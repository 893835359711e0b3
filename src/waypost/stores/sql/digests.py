"""What came by night, on SQL: a row for each morning's digest of a user, and one for each notification that is in it.

The first that is merged gives the digest its id; whoever merges the same again finds both rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.time import DAY_MS, Instant, later
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.rows import select_in
from waypost.stores.sql.transaction import OperationKind, Transaction

DIGESTS: Final = AddedTable(
    "digest",
    "CREATE TABLE IF NOT EXISTS digest"
    " (due_at {number} NOT NULL, app {text} NOT NULL, user_id {text} NOT NULL, channel {text} NOT NULL,"
    " id {blob} NOT NULL, PRIMARY KEY (due_at, app, user_id, channel),"
    " UNIQUE (app, user_id, due_at, channel)){layout}",
)
MEMBERS: Final = AddedTable(
    "digest_member",
    "CREATE TABLE IF NOT EXISTS digest_member"
    " (digest {blob} NOT NULL, notification_id {blob} NOT NULL, channel {text} NOT NULL, kind {text},"
    " title {text} NOT NULL, body {text} NOT NULL, at {number} NOT NULL, PRIMARY KEY (digest, notification_id),"
    " UNIQUE (notification_id, digest)){layout}",
)
KEPT_MS: Final = 7 * DAY_MS
"""Milliseconds for which the rows of a digest are kept after it was due: as long as it may be tried."""
_BEGIN: Final = "INSERT INTO digest (due_at, app, user_id, channel, id) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_NEWEST: Final = """\
SELECT digest.id, digest.due_at, notification.id IS NULL OR coalesce(notification.due_at, 0) > ?
FROM digest LEFT JOIN notification ON notification.id = digest.id
WHERE digest.app = ? AND digest.user_id = ? AND channel = ? AND digest.due_at BETWEEN ? AND ?
ORDER BY digest.due_at DESC LIMIT 1
"""
_ID: Final = "SELECT id FROM digest WHERE due_at = ? AND app = ? AND user_id = ? AND channel = ?"
_MOST: Final = 999
"""The most that one night's digests are apart, in milliseconds: each begins when the one before waits no more."""
_ADD: Final = """\
INSERT INTO digest_member (digest, notification_id, channel, kind, title, body, at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_MEMBERS: Final = "SELECT digest, kind, title, body FROM digest_member WHERE digest IN ({keys}) ORDER BY digest, at"
_DIGESTS_OF: Final = "SELECT notification_id, channel, digest FROM digest_member WHERE notification_id IN ({keys})"
_OLD: Final = "SELECT due_at, app, user_id, channel, id FROM digest WHERE due_at < ? LIMIT ?"
_DROP: Final = (
    "DELETE FROM digest_member WHERE digest = ?",
    "DELETE FROM digest WHERE due_at = ? AND app = ? AND user_id = ? AND channel = ?",
)
_OF_USER: Final = "SELECT due_at, app, user_id, channel, id FROM digest WHERE app = ? AND user_id = ?"


class Merging(Struct, frozen=True):
    """A notification that becomes a part of a digest."""

    app: AppId
    user_id: UserId
    channel: str
    due_at: Instant
    """When the digest is sent."""
    new_id: NotificationId
    """The digest's id, where it is the first."""
    notification_id: NotificationId
    kind: str | None
    title: str
    body: str
    at: Instant

    @property
    def key(self) -> tuple[AppId, UserId, str, Instant]:
        """The key of its night."""
        return self.app, self.user_id, self.channel, self.due_at


class Member(Struct, frozen=True):
    """The type and words of a notification that a digest has."""

    kind: str | None
    title: str
    body: str


class SqlDigests:
    """The store of what came by night."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def merge(self, merging: Sequence[Merging]) -> list[NotificationId]:
        """Put each into its digest, and return that one's id; merged again, it is in it once."""
        return await self._database.commits.submit(_MERGING, merging, rows=len(merging))

    async def digests_of(
        self, notifications: Sequence[NotificationId]
    ) -> Mapping[tuple[NotificationId, str], NotificationId]:
        """Return the digests that *notifications* are in, by channel."""
        return await self._database.read_to_route(lambda connection: _digests_of(connection, notifications))

    async def members(self, digests: Sequence[NotificationId]) -> Mapping[NotificationId, Sequence[Member]]:
        """Return what is in each of *digests*, in the order of the night."""
        return await self._database.read_to_route(lambda connection: _members(connection, digests))

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """Forget what came to the user by night."""
        await self._database.commits.submit(_ERASING, (app, user_id))

    async def drop(self, now: Instant, page: int) -> int:
        """Delete a page of digests that were due long ago, with what is in them; return how many it was."""
        return await self._database.commits.submit(_DROPPING, (now, page))


def _merge(transaction: Transaction, batches: Sequence[Sequence[Merging]]) -> list[list[NotificationId]]:
    found: dict[tuple[AppId, UserId, str, Instant], NotificationId] = {}
    for each in sorted((each for batch in batches for each in batch), key=lambda it: (it.key, it.notification_id)):
        if each.key not in found:
            found[each.key] = _digest_for(transaction.connection, each)
    answers: list[list[NotificationId]] = []
    for batch in batches:
        ids = [found[each.key] for each in batch]
        transaction.connection.executemany(
            _ADD,
            [
                (id_, each.notification_id, each.channel, each.kind, each.title, each.body, each.at)
                for id_, each in zip(ids, batch, strict=True)
            ],
        )
        answers.append(ids)
    return answers


def _digest_for(connection: Connection, first: Merging) -> NotificationId:
    """Return the digest of a night that still waits, or begin one: what was sent or cancelled takes no more in."""
    due_at = first.due_at
    for id_, at, is_waiting in connection.execute(_NEWEST, (first.at, *first.key, first.due_at + _MOST)).fetchall():
        if is_waiting:
            return NotificationId(bytes(id_))
        due_at = Instant(at + 1)
    connection.execute(_BEGIN, (due_at, first.app, first.user_id, first.channel, first.new_id))
    (found,) = connection.execute(_ID, (due_at, first.app, first.user_id, first.channel)).fetchone()
    return NotificationId(bytes(found))


def _digests_of(
    connection: Connection, notifications: Sequence[NotificationId]
) -> dict[tuple[NotificationId, str], NotificationId]:
    return {
        (NotificationId(bytes(id_)), channel): NotificationId(bytes(digest))
        for id_, channel, digest in select_in(connection, _DIGESTS_OF, notifications)
    }


def _members(connection: Connection, digests: Sequence[NotificationId]) -> dict[NotificationId, list[Member]]:
    found: dict[NotificationId, list[Member]] = {}
    for digest, *said in select_in(connection, _MEMBERS, list(dict.fromkeys(digests))):
        found.setdefault(NotificationId(bytes(digest)), []).append(Member(*said))
    return found


def _erase(transaction: Transaction, users: Sequence[tuple[AppId, UserId]]) -> list[None]:
    for user in users:
        _drop_all(transaction, transaction.connection.execute(_OF_USER, user).fetchall())
    return [None] * len(users)


def _drop(transaction: Transaction, pages: Sequence[tuple[Instant, int]]) -> list[int]:
    dropped = []
    for now, page in pages:
        rows = transaction.connection.execute(_OLD, (later(now, -KEPT_MS), page)).fetchall()
        _drop_all(transaction, rows)
        dropped.append(len(rows))
    return dropped


def _drop_all(transaction: Transaction, rows: Sequence[tuple[Instant, AppId, UserId, str, bytes]]) -> None:
    members, digests = _DROP
    transaction.connection.executemany(members, [(row[4],) for row in rows])
    transaction.connection.executemany(digests, [row[:4] for row in rows])


_MERGING: OperationKind[Sequence[Merging], list[NotificationId]] = OperationKind("merge_digest", _merge, durable=True)
_ERASING = OperationKind("erase_digests", _erase, durable=True)
_DROPPING = OperationKind("drop_digests", _drop, durable=False, patient=True)
