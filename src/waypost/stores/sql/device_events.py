"""The events that devices reported, on SQL: one row for each target, kind and action; the first one stays.

A button that was pressed is told in the journal, too, since no status changes by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.device_event import DeviceEvent, EventKind
from waypost.domain.ids import NotificationId
from waypost.domain.moves import ActionTaken
from waypost.stores.sql.added import AddedTable
from waypost.stores.sql.database import Database
from waypost.stores.sql.rows import upsert_all
from waypost.stores.sql.transaction import OperationKind, Transaction

TABLE: Final = AddedTable(
    "device_event",
    "CREATE TABLE IF NOT EXISTS device_event"
    " (notification_id {blob} NOT NULL, n {number} NOT NULL, kind {text} NOT NULL, action {text} NOT NULL,"
    " at {number} NOT NULL, PRIMARY KEY (notification_id, n, kind, action)){layout}",
    of_notification=True,
)
_ADD = "INSERT INTO device_event (notification_id, n, kind, action, at) VALUES "
_KEPT = " ON CONFLICT (notification_id, n, kind, action) DO NOTHING RETURNING notification_id, n, kind, at"
_OF = "SELECT n, kind, action, at FROM device_event WHERE notification_id = ? ORDER BY at, n, kind, action"


class SqlDeviceEvents:
    """The record of what devices reported."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, events: Sequence[DeviceEvent]) -> None:
        """Record *events*; what is known already stays as it is."""
        if events:
            await self._database.commits.submit(_ADDING, events, rows=len(events))

    async def of(self, notification_id: NotificationId) -> list[DeviceEvent]:
        """Return what devices reported of a notification, oldest first."""
        rows = await self._database.read(lambda connection: connection.execute(_OF, (notification_id,)).fetchall())
        return [DeviceEvent(notification_id, n, EventKind(kind), at, action) for n, kind, action, at in rows]


def _add(transaction: Transaction, batches: Sequence[Sequence[DeviceEvent]]) -> list[None]:
    rows = [(it.notification_id, it.n, it.kind.value, it.action, it.at) for batch in batches for it in batch]
    for notification_id, n, kind, at in upsert_all(transaction.connection, _ADD, "(?, ?, ?, ?, ?)", _KEPT, rows):
        if kind == EventKind.ACTION.value:
            transaction.actions.append(ActionTaken(NotificationId(notification_id), n, at))
    return [None] * len(batches)


_ADDING = OperationKind("add_device_events", _add, durable=True)
