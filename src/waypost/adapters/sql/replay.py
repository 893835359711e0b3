"""Replaying: a new round for the failed, expired and unknown targets of a final notification.

receipt       status pending, due at once; what stood for all targets of unrouted work is deleted
notification  status pending, round + 1, the new expires_at; one that never had targets: due_at as if scheduled
              for now, since it lies behind the tail that finds fresh rows
"""

from __future__ import annotations

from msgspec import Struct

from waypost.adapters.sql.rows import RECEIPT, RECEIPT_VALUES, REPLACE_RECEIPT, receipt_of, receipt_row
from waypost.adapters.sql.transaction import Transaction
from waypost.domain.delivery import Receipt
from waypost.domain.ids import SHARDS, UserId
from waypost.domain.notification import Lane
from waypost.domain.settlement import opened
from waypost.domain.status import FINAL, REPLAYABLE, NotificationStatus
from waypost.ports.journal import DeliveryMoved, NotificationMoved
from waypost.ports.work import Acceptance, Accepted, NotReplayable, Replay

_UNROUTED_REPLAYABLE = frozenset(
    {NotificationStatus.NO_TARGETS, NotificationStatus.EXPIRED, NotificationStatus.FAILED, NotificationStatus.UNKNOWN}
)
"""What is routed again where there are no targets to reopen."""

_FIND = "SELECT user_id, shard, lane, status, job FROM notification WHERE id = ? AND app = ?"
_FORGET = "DELETE FROM receipt WHERE notification_id = ?"
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id = ?"  # noqa: S608 - a list of columns
_REOPEN = (
    "UPDATE notification SET status = 'pending', due_at = ?, expires_at = ?, round = round + 1, withdrawn = NULL,"
    " reason = NULL, finished_at = NULL, shard = ? WHERE id = ?"
)


class _Found(Struct, frozen=True):
    user_id: UserId
    shard: int
    """Among those that workers own, also where the log carried the round before."""
    lane: Lane
    status: NotificationStatus
    job: int | None


def replay(transaction: Transaction, order: Replay) -> Acceptance:
    """Start the round, or say that there is nothing to start."""
    connection = transaction.connection
    row = connection.execute(_FIND + connection.dialect.locked, (order.notification_id, order.app)).fetchone()
    if row is None:
        return NotReplayable(known=False)
    found = _Found(row[0], row[1] % SHARDS, Lane(row[2]), NotificationStatus(row[3]), row[4])
    receipts = [receipt_of(one) for one in connection.execute(_RECEIPTS, (order.notification_id,))]
    routed_again = all(one.stands_for_all for one in receipts) and found.status in _UNROUTED_REPLAYABLE
    failed = [] if routed_again else [receipt for receipt in receipts if receipt.status in REPLAYABLE]
    if found.status not in FINAL or not (failed or routed_again):
        return NotReplayable(known=True)
    if routed_again and receipts:
        connection.execute(_FORGET, (order.notification_id,))
    _reopen(transaction, order, found, failed)
    return Accepted(order.notification_id)


def _reopen(transaction: Transaction, order: Replay, found: _Found, failed: list[Receipt]) -> None:
    pending = NotificationStatus.PENDING
    reopened = [opened(receipt, order.at) for receipt in failed]
    rows = [receipt_row(receipt, order.app, found.shard, found.lane) for receipt in reopened]
    transaction.connection.insert_all(REPLACE_RECEIPT, RECEIPT_VALUES, rows)
    due_at = None if failed else order.at
    transaction.connection.execute(_REOPEN, (due_at, order.expires_at, found.shard, order.notification_id))
    transaction.count(order.app, found.lane, found.status, -1, found.job)
    transaction.count(order.app, found.lane, pending, 1, found.job)
    transaction.moves.append(
        NotificationMoved(order.app, order.notification_id, found.user_id, found.status, pending, order.at)
    )
    for before, after in zip(failed, reopened, strict=True):
        transaction.moves.append(
            DeliveryMoved(
                order.app,
                order.notification_id,
                found.user_id,
                after.n,
                after.device_id,
                after.attempt,
                before.status,
                after.status,
                order.at,
            )
        )
