"""Notifications that a transaction changes, with their receipts: read together, folded in memory, written together.

    notification  UPDATE by seq: due_at NULL when routed; status, reason, finished_at with the last open target
    receipt       INSERT of a whole list at its first write, REPLACE of the rows that changed afterwards

Receipts are read only of rows that are routed and not final: fresh rows have none, final ones change no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waypost.adapters.sql.engine import Connection, Row
from waypost.adapters.sql.rows import (
    INSERT_RECEIPT,
    RECEIPT,
    RECEIPT_VALUES,
    REPLACE_RECEIPT,
    receipt_of,
    receipt_row,
    select_in,
)
from waypost.adapters.sql.transaction import Transaction
from waypost.domain.delivery import Receipt, Target
from waypost.domain.ids import SHARDS, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.settlement import Change, Forget, apply
from waypost.domain.status import DeliveryStatus, NotificationStatus, final_status
from waypost.domain.time import Instant
from waypost.ports.journal import DeliveryMoved, NotificationMoved

_FIND = (
    "SELECT seq, id, app, user_id, shard, lane, status, due_at, withdrawn, job FROM notification WHERE id IN ({keys})"
)
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id IN ({{keys}})"  # noqa: S608 - a list of columns
_ROUTED = "UPDATE notification SET due_at = ?, withdrawn = ? WHERE {key} = ?"
_FINISHED = (
    "UPDATE notification SET due_at = NULL, withdrawn = ?, status = ?, reason = ?, finished_at = ? WHERE {key} = ?"
)
_PENDING = DeliveryStatus.PENDING
_LANES = {word.value: word for word in Lane}
_STATUSES = {word.value: word for word in NotificationStatus}


class Case:
    """One notification in a transaction."""

    __slots__ = (
        "app", "changed", "due_at", "finished", "id", "is_new_list", "job", "lane", "moved", "reason", "receipts",
        "seq", "shard", "status", "user_id", "withdrawn",
    )  # fmt: skip

    def __init__(self, row: Row) -> None:
        self.seq, self.id, self.app, self.user_id, self.shard, lane, status, self.due_at, self.withdrawn, self.job = row
        self.lane = _LANES[lane]
        self.status = _STATUSES[status]
        self.receipts: dict[int, Receipt] = {}
        self.changed: set[int] = set()
        self.is_new_list = False
        self.moved = False
        """The row itself must be written."""
        self.finished = False
        self.reason: str | None = None

    @property
    def is_final(self) -> bool:
        """Nothing of it is open."""
        return self.status is not NotificationStatus.PENDING  # stored statuses are this and the final ones

    @property
    def is_unrouted(self) -> bool:
        """No target of it is stored: fresh or scheduled."""
        return self.due_at is not None

    def store_targets(self, transaction: Transaction, targets: Sequence[Target]) -> None:
        """Store the whole list: what a fresh notification's first write does."""
        self.due_at = None
        self.is_new_list = self.moved = True
        now = transaction.now
        for target in targets:
            reason = target.suppressed
            if reason is None:
                receipt = Receipt(self.id, target.n, target.device_id, target.channel, _PENDING, due_at=now)
                self.receipts[target.n] = receipt
                continue
            status = DeliveryStatus.SUPPRESSED
            receipt = Receipt(
                self.id, target.n, target.device_id, target.channel, status, reason=reason, resolved_at=now
            )
            self.receipts[target.n] = receipt
            transaction.moves.append(self._move(_PENDING, receipt, now))

    def apply(self, transaction: Transaction, change: Change) -> bool:
        """Settle one target; False where the change is stale."""
        before = self.receipts.get(change.n)
        if before is None:
            return False
        after = apply(before, change)
        if after is None:
            return False
        if after is before:
            return True
        self.receipts[change.n] = after
        self.changed.add(change.n)
        if change.made is not None or not (after.is_intent or after.status is _PENDING):
            transaction.moves.append(self._move(_PENDING, after, change.at, change))
        return True

    def close(self, transaction: Transaction) -> None:
        """Write the final status where the last open target is closed."""
        if self.due_at is not None or self.is_final:
            return
        if not any(receipt.is_open for receipt in self.receipts.values()):
            self.finish(transaction, final_status(receipt.status for receipt in self.receipts.values()))

    def finish(self, transaction: Transaction, status: NotificationStatus) -> None:
        """Write a final status, its journal row and its counters, once."""
        self.reason = self.withdrawn if status is NotificationStatus.CANCELLED else None
        move = NotificationMoved(self.app, self.id, self.user_id, self.status, status, transaction.now, self.reason)
        transaction.moves.append(move)
        transaction.count(self.app, self.lane, self.status, -1, self.job)
        transaction.count(self.app, self.lane, status, 1, self.job)
        self.status, self.due_at, self.finished, self.moved = status, None, True, True

    def _move(self, before: DeliveryStatus, after: Receipt, at: Instant, change: Change | None = None) -> DeliveryMoved:
        gone_since = token_hash = None
        if change is not None:
            gone_since = change.settlement.since if isinstance(change.settlement, Forget) else None
            token_hash = None if change.made is None else change.made.token_hash
        return DeliveryMoved(
            self.app,
            self.id,
            self.user_id,
            after.n,
            after.device_id,
            after.attempt,
            before,
            after.status,
            at,
            after.code,
            after.reason,
            gone_since,
            token_hash,
            change is not None and change.is_use,
        )


class Cases:
    """The notifications of one transaction by id; one whose shard is another process's by now is as one unknown."""

    def __init__(self, transaction: Transaction, ids: Iterable[NotificationId], *, by_shard: bool = True) -> None:
        """Not *by_shard*: whoever changes them knows otherwise that they are this process's."""
        self._transaction = transaction
        connection = transaction.connection
        rows = select_in(connection, _FIND + connection.dialect.locked, list(dict.fromkeys(ids)))
        owned = transaction.owned if by_shard else None
        self._cases = {
            case.id: case for case in map(Case, rows) if owned is None or case.shard in owned or case.shard >= SHARDS
        }
        open_ids = [case.id for case in self._cases.values() if case.due_at is None and not case.is_final]
        for row in select_in(connection, _RECEIPTS, open_ids):
            receipt = receipt_of(row)
            self._cases[receipt.notification_id].receipts[receipt.n] = receipt

    def get(self, notification_id: NotificationId) -> Case | None:
        """A notification, if it is known."""
        return self._cases.get(notification_id)

    def write(self) -> None:
        """Write everything that changed."""
        routed: list[Row] = []
        finished: list[Row] = []
        connection = self._transaction.connection
        key = connection.dialect.row_key
        for case in self._cases.values():
            if case.finished:
                row = (case.withdrawn, case.status, case.reason, self._transaction.now, getattr(case, key))
                finished.append(row)
            elif case.moved:
                routed.append((case.due_at, case.withdrawn, getattr(case, key)))
        write_receipts(connection, self._cases.values())
        for sql, rows in ((_ROUTED, routed), (_FINISHED, finished)):
            if rows:
                connection.executemany(sql.format(key=key), rows)


def write_receipts(connection: Connection, cases: Iterable[Case]) -> None:
    """Write every receipt of *cases* that is new or changed."""
    new: list[Row] = []
    changed: list[Row] = []
    for case in cases:
        if case.is_new_list:
            new += [receipt_row(receipt, case.app, case.shard, case.lane) for receipt in case.receipts.values()]
        else:
            changed += [receipt_row(case.receipts[n], case.app, case.shard, case.lane) for n in case.changed]
    for sql, rows in ((INSERT_RECEIPT, new), (REPLACE_RECEIPT, changed)):
        connection.insert_all(sql, RECEIPT_VALUES, rows)
