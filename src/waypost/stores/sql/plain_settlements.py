"""The plain way, shorter than the general one and with the same result: fresh, and each target taken at once.

Most notifications go it; so their receipts are written without going through every case of
``domain.settlement.apply``, and their rows are changed by one statement.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from waypost.domain.balance import DELIVERY_COUNTS, Count
from waypost.domain.ids import AppId
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.notification import Lane
from waypost.domain.settlement import Sent
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.ports.work import Settled
from waypost.stores.sql.driver import Row
from waypost.stores.sql.rows import LANES, NOTIFICATION_STATUSES, execute_in
from waypost.stores.sql.transaction import Transaction

_INSERT = (
    "INSERT INTO receipt (notification_id, n, device_id, channel, status, attempt, retries, throttles, provider_id,"
    " code, dead, first_attempt_at, last_attempt_at, sent_at, resolved_at, attempts, app, shard) VALUES "
)
_VALUES = "(?, ?, ?, ?, 'sent', 1, 0, 0, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)"
_FINISHED = "UPDATE notification SET due_at = NULL, status = 'sent', finished_at = ? WHERE {key} IN ({{keys}})"

_PENDING = DeliveryStatus.PENDING
_SENT = DeliveryStatus.SENT

_encode = msgspec.msgpack.Encoder().encode


class PlainSettlements:
    """The plain settlements of a transaction: what it writes of notifications settled in the short way."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._row_key = transaction.connection.dialect.row_key
        self._is_by_id = self._row_key == "id"
        self._receipts: list[Row] = []
        self._keys: list[Any] = []
        self._taken: Counter[tuple[AppId, Lane]] = Counter()
        """How many deliveries were taken, by app and lane."""
        self._finished: Counter[tuple[AppId, Lane, NotificationStatus | None, int | None]] = Counter()
        """How many notifications ended, by app, lane, status before, and bulk job."""

    def take(self, row: Row, settled: Settled) -> None:
        """Finish a notification of which nothing but its *row* is stored yet, as PendingChanges.finish returns it."""
        seq, notification_id, app, user_id, shard, word, status, _, _, job = row
        lane, before, now = LANES[word], NOTIFICATION_STATUSES[status], self._transaction.now
        self.note(app, lane, shard, settled)
        self._transaction.moves.append(
            NotificationMoved(app, notification_id, user_id, before, NotificationStatus.SENT, now)
        )
        self._finished[app, lane, before, job] += 1
        self._keys.append(notification_id if self._is_by_id else seq)

    def note(self, app: AppId, lane: Lane, shard: int, settled: Settled) -> None:
        """Write the receipts of a notification."""
        moves, receipts = self._transaction.moves, self._receipts
        notification_id, user_id = settled.notification.id, settled.notification.user_id
        self._taken[app, lane] += len(settled.changes)
        targets = settled.targets or ()
        for change in settled.changes:
            n, made, at = change.n, change.made, change.at
            assert made is not None
            settlement = change.settlement
            assert type(settlement) is Sent
            target = targets[n]
            device_id, code, attempted_at = target.device_id, made.code or None, made.at
            receipts.append(
                (
                    notification_id,
                    n,
                    device_id,
                    target.channel,
                    settlement.provider_id,
                    code,
                    attempted_at,
                    attempted_at,
                    at,
                    at,
                    _encode((made,)),
                    app,
                    shard,
                )
            )
            named = (app, notification_id, user_id, n, device_id)
            moves.append(DeliveryMoved(*named, 1, _PENDING, _SENT, at, code, None, None, None, change.is_use))

    def write(self) -> None:
        """Write all plain settlements."""
        connection = self._transaction.connection
        for (app, lane, before, job), n in self._finished.items():
            if before is not None:
                self._transaction.count(app, lane, before, -n, job)
            self._transaction.count(app, lane, NotificationStatus.SENT, n, job)
        for (app, lane), n in self._taken.items():
            self._transaction.tally(app, lane, Count.TARGETS, n)
            self._transaction.tally(app, lane, DELIVERY_COUNTS[_SENT], n)
        if self._receipts:
            connection.insert_all(_INSERT, _VALUES, self._receipts)
        if self._keys:
            execute_in(connection, _FINISHED.format(key=self._row_key), self._keys, self._transaction.now)
