"""How many notifications a user has had, on SQL: a row for each that was about to be sent, and each cap it counts for.

A claim is written before the attempt, in one transaction with the count that lets it pass; of one user there is one
such transaction at a time. So processes that send to a user at the same time never send more than a cap allows. The
row names the notification: its retries, and a process that sends it after another died, find it and count once.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

from waypost.domain.capping import NO_CAP, Claim, Verdicts, judge
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.preferences import LONGEST_CAP_S
from waypost.domain.time import DAY_MS, SECOND_MS, Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.rows import select_in
from waypost.stores.sql.transaction import OperationKind, Transaction

COUNTED: Final = AddedTable(
    "frequency_count",
    "CREATE TABLE IF NOT EXISTS frequency_count"
    " (day {number} NOT NULL, app {text} NOT NULL, user_id {text} NOT NULL, notification_id {blob} NOT NULL,"
    " scope {text} NOT NULL, at {number} NOT NULL,"
    " PRIMARY KEY (day, app, user_id, notification_id, scope)){layout}",
)
_TURN: Final = "SELECT pg_advisory_xact_lock(CAST(? AS integer), 72)"
"""Waits for its turn at a user, as its transaction ends; 72 tells these locks from others."""
_COUNT: Final = """\
INSERT INTO frequency_count (day, app, user_id, notification_id, scope, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (day, app, user_id, notification_id, scope) DO UPDATE SET at = excluded.at
"""
_OF_USER: Final = (
    "SELECT scope, notification_id, at FROM frequency_count WHERE app = ? AND user_id = ? AND day IN ({days})"
)
_UNSENT: Final = (
    "SELECT id FROM notification WHERE id IN ({keys}) AND status IN ('failed', 'expired', 'suppressed', 'cancelled')"
)
_ACCEPTED: Final = "SELECT id FROM notification WHERE id IN ({keys})"
_ERASE: Final = "DELETE FROM frequency_count WHERE app = ? AND user_id = ? AND day IN ({days})"
_DROP: Final = (
    "DELETE FROM frequency_count WHERE (day, app, user_id, notification_id, scope) IN"
    " (SELECT day, app, user_id, notification_id, scope FROM frequency_count WHERE day < ? LIMIT ?)"
)
_KEPT_DAYS: Final = LONGEST_CAP_S * SECOND_MS // DAY_MS + 1


class SqlFrequency:
    """The counts of what users were sent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, claims: Sequence[Claim]) -> list[Verdicts]:
        """Count *claims* where there is room, and say where there is none. Raises Unavailable, and counts none."""
        return await self._database.commits.submit(_CLAIMING, claims, rows=len(claims))

    async def look(self, claims: Sequence[Claim]) -> list[Verdicts]:
        """Say what ``claim`` would, and count nothing."""
        return await self._database.read(lambda connection: [_judged(connection, each) for each in claims])

    async def accepted(self, ids: Sequence[NotificationId]) -> set[NotificationId]:
        """Return those of *ids* that were accepted: copies of what was over a cap."""
        return await self._database.read_to_route(
            lambda connection: {NotificationId(bytes(row[0])) for row in select_in(connection, _ACCEPTED, list(ids))}
        )

    async def erase(self, app: AppId, user_id: UserId) -> None:
        """Forget what the user was sent."""
        await self._database.commits.submit(_ERASING, (app, user_id))

    async def drop(self, now: Instant, page: int) -> int:
        """Delete a page of counts that no cap can ask for any more; return how many it was."""
        return await self._database.commits.submit(_DROPPING, (now, page))


def _claim(transaction: Transaction, batches: Sequence[Sequence[Claim]]) -> list[list[Verdicts]]:
    connection = transaction.connection
    if connection.dialect.has_other_writers:
        turns = {_turn(each) for claims in batches for each in claims}
        for turn in sorted(turns):  # in one order: nobody waits in a circle
            connection.execute(_TURN, (turn,)).fetchone()
    return [[_claim_one(connection, each) for each in claims] for claims in batches]


def _turn(claim: Claim) -> int:
    """Return the number of a user's lock, from 32 bits; two users with the same wait for each other."""
    return zlib.crc32(f"{claim.app}\n{claim.user_id}".encode()) - (1 << 31)


def _claim_one(connection: Connection, claim: Claim) -> Verdicts:
    verdicts = _judged(connection, claim)
    if verdicts.whole is not None or (claim.channels and claim.channels <= verdicts.channels.keys()):
        return verdicts
    key = claim.at // DAY_MS, claim.app, claim.user_id, claim.notification_id
    passed = [(*key, scope, claim.at) for scope, channel, _ in claim.scopes() if channel not in verdicts.channels]
    connection.executemany(_COUNT, passed)
    return verdicts


def _judged(connection: Connection, claim: Claim) -> Verdicts:
    """Judge *claim*; where there is no room, what came to its end unsent is not counted."""
    counted = _counted(connection, claim)
    verdicts = judge(claim, counted)
    if verdicts == NO_CAP:
        return verdicts
    ids = {one for of_scope in counted.values() for one in of_scope}
    unsent = {row[0] for row in select_in(connection, _UNSENT, sorted(ids))}
    if not unsent:
        return verdicts
    return judge(claim, {scope: _without(of_scope, unsent) for scope, of_scope in counted.items()})


def _without(counted: dict[NotificationId, Instant], unsent: set[NotificationId]) -> dict[NotificationId, Instant]:
    return {one: at for one, at in counted.items() if one not in unsent}


def _counted(connection: Connection, claim: Claim) -> dict[str, dict[NotificationId, Instant]]:
    days = claim.days
    asked = _OF_USER.format(days=", ".join("?" * len(days)))
    counted: dict[str, dict[NotificationId, Instant]] = {}
    for scope, one, at in connection.execute(asked, (claim.app, claim.user_id, *days)).fetchall():
        of_scope = counted.setdefault(scope, {})
        named = NotificationId(bytes(one))
        of_scope[named] = max(at, of_scope.get(named, at))
    return counted


def _erase(transaction: Transaction, users: Sequence[tuple[AppId, UserId]]) -> list[None]:
    days = range(transaction.now // DAY_MS - _KEPT_DAYS, transaction.now // DAY_MS + 2)
    statement = _ERASE.format(days=", ".join("?" * len(days)))
    transaction.connection.executemany(statement, [(*user, *days) for user in users])
    return [None] * len(users)


def _drop(transaction: Transaction, pages: Sequence[tuple[Instant, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP, (now // DAY_MS - _KEPT_DAYS, page)).rowcount for now, page in pages]


_CLAIMING: OperationKind[Sequence[Claim], list[Verdicts]] = OperationKind("claim_frequency", _claim, durable=False)
_ERASING = OperationKind("erase_frequency", _erase, durable=True)
_DROPPING = OperationKind("drop_frequency", _drop, durable=False, patient=True)
