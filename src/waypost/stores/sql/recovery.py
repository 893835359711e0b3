"""Suspects and alerts on SQL: a row each, by the id of the notification that they are about.

suspect   noted by a search, claimed by one worker at a time, gone with what became of it
alert     one of a notification: raised anew, it is written over
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId
from waypost.domain.recovery import AlertType, Stuck, Thresholds
from waypost.domain.time import MINUTE_MS, Instant, later
from waypost.ports.recovery import Alert, AlertQuery, Claimed, Cleared, Concluded, How, Retried
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.suspects import FIRST, search, standing
from waypost.stores.sql.transaction import OperationKind, Transaction

CLAIM_MS: Final = MINUTE_MS
"""Milliseconds after which a claim is taken over, whose worker has not concluded."""
SUSPECT: Final = AddedTable(
    "suspect",
    "CREATE TABLE IF NOT EXISTS suspect (notification_id {blob} NOT NULL PRIMARY KEY, seen_at {number} NOT NULL,"
    " recovery_claimed_by {text}, claimed_at {number}, retried_at {number}){layout}",
    of_notification=True,
)
ALERT: Final = AddedTable(
    "alert",
    "CREATE TABLE IF NOT EXISTS alert (notification_id {blob} NOT NULL PRIMARY KEY, app {text} NOT NULL,"
    " type {text} NOT NULL, reason {text} NOT NULL, redis_status {text}, db_status {text} NOT NULL,"
    " retry_count {number} NOT NULL, raised_at {number} NOT NULL, resolved_at {number}, how {text},"
    " UNIQUE (app, notification_id), UNIQUE (app, resolved_at, notification_id),"
    " UNIQUE (resolved_at, notification_id)){layout}",
    of_notification=True,
)
"""The keys beside the first are for the lists of an app, all and open, and for who looks for what is over, or old."""
_NOTE = "INSERT INTO suspect (notification_id, seen_at) VALUES (?, ?) ON CONFLICT (notification_id) DO NOTHING"
_SUSPECTS = "SELECT notification_id FROM suspect WHERE seen_at < ? ORDER BY seen_at, notification_id LIMIT ?"
_CLAIM = (
    "UPDATE suspect SET recovery_claimed_by = ?, claimed_at = ?"
    " WHERE notification_id = ? AND (recovery_claimed_by IS NULL OR claimed_at < ?)"
)
_WAS_RETRIED = "SELECT retried_at FROM suspect WHERE notification_id = ?"
_CLEAR = "DELETE FROM suspect WHERE notification_id = ?"
_RETRIED = (
    "UPDATE suspect SET recovery_claimed_by = NULL, claimed_at = NULL, seen_at = ?1, retried_at = ?1"
    " WHERE notification_id = ?2"
)
_COLUMNS = "app, notification_id, type, reason, redis_status, db_status, retry_count, raised_at, resolved_at, how"
_RAISE = (
    f"INSERT INTO alert ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)"  # noqa: S608 - columns
    " ON CONFLICT (notification_id) DO UPDATE SET type = excluded.type, reason = excluded.reason,"
    " redis_status = excluded.redis_status, db_status = excluded.db_status, retry_count = excluded.retry_count,"
    " raised_at = excluded.raised_at, resolved_at = NULL, how = NULL WHERE alert.resolved_at IS NOT NULL"
)
OVER: Final = (
    f"SELECT {_COLUMNS} FROM alert WHERE resolved_at IS NULL AND NOT EXISTS"  # noqa: S608 - columns
    " (SELECT 1 FROM notification WHERE id = alert.notification_id AND finished_at IS NULL) LIMIT ?"
)
_RESOLVE = "UPDATE alert SET resolved_at = ?, how = ? WHERE notification_id = ? AND app = ? AND resolved_at IS NULL"
_ONE = f"SELECT {_COLUMNS} FROM alert WHERE notification_id = ? AND app = ?"  # noqa: S608 - columns
PAGES: Final = {
    resolved: f"SELECT {_COLUMNS} FROM alert WHERE app = ? AND notification_id < ?{condition} DESC LIMIT ?"  # noqa: S608 - columns
    for resolved, condition in {
        None: " ORDER BY notification_id",
        False: " AND resolved_at IS NULL ORDER BY resolved_at DESC, notification_id",  # one range of its key
        True: " AND resolved_at IS NOT NULL ORDER BY notification_id",
    }.items()
}
"""A statement for each filter, by what it says of ``resolved``."""
_LAST: Final = NotificationId(b"\xff" * 17)
OLD: Final = "SELECT notification_id FROM alert WHERE resolved_at < ? ORDER BY resolved_at LIMIT ?"
_DROP: Final = f"DELETE FROM alert WHERE notification_id IN ({OLD})"  # noqa: S608 - a statement of ours


class _Claim(Struct, frozen=True):
    """An order to claim suspects."""

    ids: tuple[NotificationId, ...]
    by: str
    at: Instant


class SqlRecovery:
    """See Recovery."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._walked_to = FIRST

    async def search(self, thresholds: Thresholds, now: Instant, n: int) -> Sequence[Stuck]:
        """See Recovery."""
        after = self._walked_to
        found, self._walked_to = await self._database.read(
            lambda connection: search(connection, thresholds, now, n, after)
        )
        if found:
            await self._database.commits.submit(_NOTING, [(each.standing.id, now) for each in found], len(found))
        return found

    async def suspects(self, seen_before: Instant, n: int) -> Sequence[NotificationId]:
        """See Recovery."""
        bound = (seen_before, n)
        rows = await self._database.read(lambda connection: connection.execute(_SUSPECTS, bound).fetchall())
        return [row[0] for row in rows]

    async def claim(self, ids: Sequence[NotificationId], by: str, now: Instant) -> Sequence[Claimed]:
        """See Recovery."""
        return await self._database.commits.submit(_CLAIMING, _Claim(tuple(ids), by, now), len(ids)) if ids else []

    async def conclude(self, news: Sequence[Concluded], now: Instant) -> Sequence[Alert]:
        """See Recovery."""
        return await self._database.commits.submit(_CONCLUDING, (news, now), len(news)) if news else []

    async def end(self, now: Instant, n: int) -> Sequence[Alert]:
        """See Recovery."""
        rows = await self._database.read(lambda connection: connection.execute(OVER, (n,)).fetchall())
        over = [_alert(*row) for row in rows]
        ended = [await self.resolve(each.app, each.notification_id, How.ENDED, now) for each in over]
        return [each for each, was_open in zip(over, ended, strict=True) if was_open]

    async def resolve(self, app: AppId, notification_id: NotificationId, how: How, now: Instant) -> bool:
        """See Recovery."""
        return await self._database.commits.submit(_RESOLVING, (now, how, notification_id, app))

    async def alert(self, app: AppId, notification_id: NotificationId) -> Alert | None:
        """See Recovery."""
        row = await self._database.read(lambda connection: connection.execute(_ONE, (notification_id, app)).fetchone())
        return None if row is None else _alert(*row)

    async def alerts(self, query: AlertQuery) -> Sequence[Alert]:
        """See Recovery."""
        sql, bound = PAGES[query.resolved], (query.app, query.before or _LAST, query.limit)
        rows = await self._database.read(lambda connection: connection.execute(sql, bound).fetchall())
        return [_alert(*row) for row in rows]

    async def drop_before(self, before: Instant, n: int) -> int:
        """See Recovery."""
        return await self._database.commits.submit(_DROPPING, (before, n), n)


def _alert(app: str, notification_id: bytes, kind: str, reason: str, *said: Any) -> Alert:
    redis_status, db_status, retry_count, raised_at, resolved_at, how = said
    named = AppId(app), NotificationId(bytes(notification_id)), AlertType(kind), reason
    return Alert(
        *named, redis_status, db_status, retry_count, raised_at, resolved_at, None if how is None else How(how)
    )


def _note(transaction: Transaction, pages: Sequence[Sequence[tuple[NotificationId, Instant]]]) -> list[None]:
    transaction.connection.executemany(_NOTE, [row for page in pages for row in page])
    return [None] * len(pages)


def _claim(transaction: Transaction, orders: Sequence[_Claim]) -> list[Sequence[Claimed]]:
    return [list(_claim_some(transaction.connection, order)) for order in orders]


def _claim_some(connection: Connection, order: _Claim) -> Iterator[Claimed]:
    stale = later(order.at, -CLAIM_MS)
    taken = [
        one
        for one in sorted(order.ids)  # in one order, so that two who claim the same do not wait for each other
        if connection.execute(_CLAIM, (order.by, order.at, one, stale)).rowcount == 1
    ]
    found = {each.id: each for each in standing(connection, taken)}
    for one in taken:
        if one in found:
            (retried_at,) = connection.execute(_WAS_RETRIED, (one,)).fetchone()
            yield Claimed(found[one], retried_at is not None)
        else:
            connection.execute(_CLEAR, (one,))


def _conclude(transaction: Transaction, orders: Sequence[tuple[Sequence[Concluded], Instant]]) -> list[Sequence[Alert]]:
    return [_conclude_some(transaction.connection, *order) for order in orders]


def _conclude_some(connection: Connection, news: Sequence[Concluded], now: Instant) -> list[Alert]:
    raised: list[Alert] = []
    for each in news:
        match each:
            case Cleared(one):
                connection.execute(_CLEAR, (one,))
            case Retried(one):
                connection.execute(_RETRIED, (now, one))
            case Alert():
                connection.execute(_CLEAR, (each.notification_id,))
                said = (each.redis_status, each.db_status, each.retry_count, each.raised_at)
                row = (each.app, each.notification_id, each.type, each.reason, *said)
                if connection.execute(_RAISE, row).rowcount == 1:
                    raised.append(each)
    return raised


def _resolve(transaction: Transaction, orders: Sequence[tuple[Instant, How, NotificationId, AppId]]) -> list[bool]:
    return [transaction.connection.execute(_RESOLVE, order).rowcount == 1 for order in orders]


def _drop(transaction: Transaction, orders: Sequence[tuple[Instant, int]]) -> list[int]:
    return [transaction.connection.execute(_DROP, order).rowcount for order in orders]


_NOTING: OperationKind[Sequence[tuple[NotificationId, Instant]], None] = OperationKind(
    "note_suspects", _note, durable=False
)
_CLAIMING: OperationKind[_Claim, Sequence[Claimed]] = OperationKind("claim_suspects", _claim, durable=False)
_CONCLUDING: OperationKind[tuple[Sequence[Concluded], Instant], Sequence[Alert]] = OperationKind(
    "conclude_suspects", _conclude, durable=True
)
_RESOLVING: OperationKind[tuple[Instant, How, NotificationId, AppId], bool] = OperationKind(
    "resolve_alert", _resolve, durable=True
)
_DROPPING: OperationKind[tuple[Instant, int], int] = OperationKind("drop_alerts", _drop, durable=False)
