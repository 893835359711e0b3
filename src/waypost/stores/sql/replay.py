"""Replaying: a new round for the failed, expired and unknown targets of a final notification.

receipt       status pending, due at once; what stood for all targets of unrouted work is deleted
notification  status pending, round + 1, the new expires_at; one that never had targets: due_at as if scheduled
              for now, since it lies behind the tail that finds fresh rows
"""

from __future__ import annotations

from waypost.domain.balance import delivery_changes, forgotten
from waypost.domain.ids import SHARDS
from waypost.domain.notification import Lane
from waypost.domain.progress import Progress
from waypost.domain.replay import new_round
from waypost.domain.status import NotificationStatus
from waypost.ports.work import Acceptance, Accepted, NotReplayable, Replay
from waypost.stores.sql.rows import (
    LANES,
    NOTIFICATION_STATUSES,
    RECEIPT,
    RECEIPT_VALUES,
    REPLACE_RECEIPT,
    receipt_of,
    receipt_row,
)
from waypost.stores.sql.transaction import Transaction

_FIND = "SELECT user_id, shard, lane, status, job FROM notification WHERE id = ? AND app = ?"
_FORGET = "DELETE FROM receipt WHERE notification_id = ?"
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id = ?"  # noqa: S608 - a list of columns
_REOPEN = (
    "UPDATE notification SET status = 'pending', due_at = ?, expires_at = ?, round = round + 1, withdrawn = NULL,"
    " reason = NULL, finished_at = NULL, shard = ? WHERE id = ?"
)


def replay(transaction: Transaction, order: Replay) -> Acceptance:
    """Start the round, or return that there is nothing to start."""
    connection = transaction.connection
    row = connection.execute(_FIND + connection.dialect.locked, (order.notification_id, order.app)).fetchone()
    if row is None:
        return NotReplayable(known=False)
    user_id, shard, lane_word, status_word, job = row
    if lane_word not in LANES or status_word not in NOTIFICATION_STATUSES:
        return NotReplayable(known=True)
    lane, status = Lane(lane_word), NotificationStatus(status_word)
    receipts = {each.n: each for each in map(receipt_of, connection.execute(_RECEIPTS, (order.notification_id,)))}
    progress = Progress(order.app, order.notification_id, user_id, status, receipts)
    step = new_round(progress, order.at, order.taken)
    if step is None:
        return NotReplayable(known=True)
    shard %= SHARDS  # among those that workers own, also where the log carried the round before
    changes = [*delivery_changes(step, step.changed)]
    if step.progress.receipts is None and receipts:
        connection.execute(_FORGET, (order.notification_id,))
        changes += forgotten(receipts.values())
    for word, n in changes:
        transaction.tally(order.app, lane, word, n)
    rows = [receipt_row(each, order.app, shard, lane) for each in step.changed]
    connection.insert_all(REPLACE_RECEIPT, RECEIPT_VALUES, rows)
    due_at = order.at if step.progress.receipts is None else None
    connection.execute(_REOPEN, (due_at, order.expires_at, shard, order.notification_id))
    transaction.count(order.app, lane, status, -1, job)
    transaction.count(order.app, lane, NotificationStatus.PENDING, 1, job)
    transaction.moves += step.moves
    return Accepted(order.notification_id)
