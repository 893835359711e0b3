"""The status changes that are still to be told to webhooks, on SQL: of each notification one after the other.

The first row of a notification is on its way as a notification of its own; when that ended the next one is, and once
that is accepted the row of the first goes: whoever reads the end again after a crash finds what follows. Beside it, the
URLs that want nothing any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, token_hash
from waypost.domain.time import Instant
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.transaction import OperationKind, Transaction

QUEUE: Final = AddedTable(
    "webhook_queue",
    "CREATE TABLE IF NOT EXISTS webhook_queue"
    " (id {blob} NOT NULL PRIMARY KEY, notification_id {blob} NOT NULL, seq {number} NOT NULL, app {text} NOT NULL,"
    " url {text} NOT NULL, at {number} NOT NULL, body {blob} NOT NULL, UNIQUE (notification_id, seq)){layout}",
    of_notification=True,
    is_to_be_told=True,
)
DISABLED: Final = AddedTable(
    "webhook_disabled",
    "CREATE TABLE IF NOT EXISTS webhook_disabled"
    " (app {text} NOT NULL, url_hash {blob} NOT NULL, at {number} NOT NULL, PRIMARY KEY (app, url_hash)){layout}",
)
_COLUMNS: Final = "id, notification_id, seq, app, url, at, body"
_ADD: Final = f"INSERT INTO webhook_queue ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 - ours
_OF: Final = "SELECT notification_id FROM webhook_queue WHERE id = ?"
_DROP: Final = "DELETE FROM webhook_queue WHERE id = ?"
_LINE: Final = f"SELECT {_COLUMNS} FROM webhook_queue WHERE notification_id = ? ORDER BY seq"  # noqa: S608 - ours
_IS_DISABLED: Final = "SELECT 1 FROM webhook_disabled WHERE app = ? AND url_hash = ?"
_DISABLE: Final = "INSERT INTO webhook_disabled (app, url_hash, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_ENABLE: Final = (
    "DELETE FROM webhook_disabled WHERE (app, url_hash) IN"
    " (SELECT app, url_hash FROM webhook_disabled WHERE at < ? LIMIT ?)"
)


class WebhookEvent(Struct, frozen=True):
    """A status change to be told; *id* is that of the notification that tells it."""

    id: NotificationId
    notification_id: NotificationId
    """The notification that it is about."""
    seq: int
    """The place in the journal."""
    app: AppId
    url: str
    at: Instant
    body: bytes


class WebhookEnded(Struct, frozen=True):
    """An event was told, or could not be."""

    id: NotificationId


class WebhookGone(Struct, frozen=True):
    """A URL wants nothing any more."""

    app: AppId
    url_hash: bytes
    at: Instant


WebhookNews = WebhookEvent | WebhookEnded | WebhookGone


class SqlWebhookQueue:
    """The queue of what webhooks are still to be told."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, news: Sequence[WebhookNews]) -> list[WebhookEvent]:
        """Write *news*, and return what is first in line of each notification of it; may be repeated."""
        return await self._database.commits.submit(_TAKING, news, rows=len(news)) if news else []

    async def drop(self, news: Sequence[WebhookNews]) -> None:
        """Delete what ended, by *news* that were taken, once what followed it is accepted; may be repeated."""
        if ended := [each.id for each in news if isinstance(each, WebhookEnded)]:
            await self._database.commits.submit(_DROPPING, ended, rows=len(ended))

    async def enable(self, before: Instant, n: int) -> int:
        """Enable at most *n* URLs again that were disabled before a time; return how many it was."""
        return await self._database.commits.submit(_ENABLING, (before, n))


def _take(transaction: Transaction, batches: Sequence[Sequence[WebhookNews]]) -> list[list[WebhookEvent]]:
    return [_take_one(transaction.connection, news) for news in batches]


def _take_one(connection: Connection, news: Sequence[WebhookNews]) -> list[WebhookEvent]:
    touched: dict[NotificationId, None] = {}
    ended = {each.id for each in news if isinstance(each, WebhookEnded)}
    for each in news:
        match each:
            case WebhookEvent():
                if not connection.execute(_IS_DISABLED, (each.app, token_hash(each.url))).fetchall():
                    connection.execute(_ADD, _row(each))
                    touched[each.notification_id] = None
            case WebhookEnded():
                for (notification_id,) in connection.execute(_OF, (each.id,)).fetchall():
                    touched[NotificationId(notification_id)] = None
            case WebhookGone():
                connection.execute(_DISABLE, (each.app, each.url_hash, each.at))
    lines = ((_event(*row) for row in connection.execute(_LINE, (it,)).fetchall()) for it in touched)
    return [first for line in lines if (first := next((each for each in line if each.id not in ended), None))]


def _drop(transaction: Transaction, batches: Sequence[Sequence[NotificationId]]) -> list[None]:
    transaction.connection.executemany(_DROP, [(each,) for batch in batches for each in batch])
    return [None] * len(batches)


def _row(event: WebhookEvent) -> tuple[object, ...]:
    return (event.id, event.notification_id, event.seq, event.app, event.url, event.at, event.body)


def _event(event_id: bytes, notification_id: bytes, seq: int, app: str, url: str, at: int, body: bytes) -> WebhookEvent:
    ids = NotificationId(event_id), NotificationId(notification_id)
    return WebhookEvent(*ids, seq, AppId(app), url, Instant(at), bytes(body))


def _enable(transaction: Transaction, orders: Sequence[tuple[Instant, int]]) -> list[int]:
    return [transaction.connection.execute(_ENABLE, order).rowcount for order in orders]


_TAKING: Final = OperationKind("take_webhook_news", _take, durable=True)
_DROPPING: Final = OperationKind("drop_webhook_news", _drop, durable=False)
_ENABLING: Final = OperationKind("enable_webhooks", _enable, durable=True)
