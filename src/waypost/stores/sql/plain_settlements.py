"""The plain way, shorter than the general one and with the same result: fresh, and each target taken at once.

Most notifications go it; so their receipts are written without going through every case of
``domain.settlement.apply``, and their rows are changed by one statement.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from waypost.domain.balance import DELIVERY_COUNTS, Count
from waypost.domain.ids import AppId
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.notification import Lane
from waypost.domain.settlement import Sent
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.ports.work import Settled
from waypost.stores.sql.driver import Row
from waypost.stores.sql.rows import execute_in
from waypost.stores.sql.transaction import Transaction

if TYPE_CHECKING:
    from waypost.stores.sql.pending_changes import PendingChange

_INSERT = (
    "INSERT INTO receipt (notification_id, n, device_id, channel, status, attempt, retries, throttles, provider_id,"
    " code, dead, first_attempt_at, last_attempt_at, sent_at, resolved_at, attempts, app, shard) VALUES "
)
_VALUES = "(?, ?, ?, ?, 'sent', 1, 0, 0, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)"
_FINISHED = "UPDATE notification SET due_at = NULL, status = 'sent', finished_at = {now} WHERE {key} IN ({{keys}})"

_PENDING = DeliveryStatus.PENDING
_SENT = DeliveryStatus.SENT

_encode = msgspec.msgpack.Encoder().encode


class PlainSettlements:
    """The plain settlements of a transaction: what it writes of notifications settled in the short way."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._row_key = transaction.connection.dialect.row_key
        self._receipts: list[Row] = []
        self._keys: list[Any] = []
        self._taken: Counter[tuple[AppId, Lane]] = Counter()
        """How many deliveries were taken, by app and lane."""
        self._finished: Counter[tuple[AppId, Lane, NotificationStatus | None, int | None]] = Counter()
        """How many notifications ended, by app, lane, status before, and bulk job."""

    def take(self, case: PendingChange, settled: Settled) -> None:
        """Finish a notification of which nothing but its row is stored yet."""
        self.note(case, settled)
        progress = case.progress
        named = (progress.app, progress.id, progress.user_id)
        now = self._transaction.now
        self._transaction.moves.append(NotificationMoved(*named, progress.status, NotificationStatus.SENT, now))
        self._finished[progress.app, case.lane, progress.status, case.job] += 1
        case.progress = replace(progress, status=NotificationStatus.SENT)
        self._keys.append(getattr(case, self._row_key))

    def note(self, case: PendingChange, settled: Settled) -> None:
        """Write the receipts of a notification."""
        moves, receipts = self._transaction.moves, self._receipts
        progress, shard = case.progress, case.shard
        app, notification_id, user_id = progress.app, progress.id, progress.user_id
        self._taken[app, case.lane] += len(settled.changes)
        targets = {target.n: target for target in settled.targets or ()}
        for change in settled.changes:
            n, made, settlement, at = change.n, change.made, change.settlement, change.at
            assert made is not None
            assert type(settlement) is Sent
            target = targets[n]
            device_id, code, attempted_at = target.device_id, made.code or None, made.at
            taken = (settlement.provider_id, code, attempted_at, attempted_at, at, at, _encode((made,)))
            receipts.append((notification_id, n, device_id, target.channel, *taken, app, shard))
            known = (None, None, None, change.is_use)
            moves.append(
                DeliveryMoved(app, notification_id, user_id, n, device_id, 1, _PENDING, _SENT, at, code, *known)
            )

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
            execute_in(connection, _FINISHED.format(now=self._transaction.now, key=self._row_key), self._keys)
