"""Notifications that a transaction changes, with their receipts: read together, changed in memory, written together.

    notification  UPDATE by seq: due_at NULL when routed; status, reason, finished_at with the last open target;
                  due_at, scheduled_at, expires_at when it is rescheduled
    receipt       INSERT of a whole list at its first write, REPLACE of the rows that changed afterwards

Receipts are read only of rows that are routed and not final: fresh rows have none, final ones change no more but by a
confirmation, under the lock of their row, whoever owns its shard. What a change means is decided by domain/progress.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

import msgspec

from waypost.domain.balance import delivery_changes
from waypost.domain.delivery import Receipt
from waypost.domain.ids import SHARDS, NotificationId
from waypost.domain.notification import Lane
from waypost.domain.progress import Progress, Step
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.rows import (
    INSERT_RECEIPT,
    LANES,
    NOTIFICATION_STATUSES,
    RECEIPT,
    RECEIPT_KEY,
    RECEIPT_VALUES,
    REPLACE_RECEIPT,
    REPORTED,
    execute_in,
    receipt_of,
    receipt_row,
    reported_row,
    select_in,
)
from waypost.stores.sql.transaction import Transaction

_FIND = (
    "SELECT seq, id, app, user_id, shard, lane, status, due_at, withdrawn, job FROM notification WHERE id IN ({keys})"
)
_STATUS, _WITHDRAWN = 6, 8
"""The places of these columns in what _FIND reads."""
_RECEIPTS = f"SELECT {RECEIPT} FROM receipt WHERE notification_id IN ({{keys}})"  # noqa: S608 - a list of columns
ROWS_LOCKED = " FOR NO KEY UPDATE"
"""Rows that nobody else changes or claims before this transaction ends."""
_ROUTED = "UPDATE notification SET due_at = ?, withdrawn = ? WHERE {key} = ?"
_FINISHED = (
    "UPDATE notification SET due_at = NULL, withdrawn = ?, status = ?, reason = ?, finished_at = ? WHERE {key} = ?"
)
_RESCHEDULED = "UPDATE notification SET due_at = ?1, scheduled_at = ?1, expires_at = ?1 + ttl_ms WHERE {key} = ?2"
_RESTATED = "UPDATE notification SET status = '{status}' WHERE {key} IN ({{keys}})"
_PENDING = NotificationStatus.PENDING.value
"""The stored status that is not final."""


class PendingChange:
    """A notification in a transaction: its progress, and what of it is to be written."""

    __slots__ = (
        "changed", "due_at", "finished", "is_new_list", "job", "lane", "moved", "progress", "reported", "rescheduled",
        "restated", "seq", "shard",
    )  # fmt: skip

    def __init__(self, progress: Progress, seq: int, shard: int, lane: Lane, job: int | None) -> None:
        self.progress = progress
        self.seq = seq
        self.shard = shard
        self.lane = lane
        self.job = job
        self.due_at: Instant | None = None
        """The time when it is looked at next as a whole: never for what is routed or final."""
        self.changed: set[int] = set()
        """The numbers of the receipts that must be written."""
        self.reported: set[int] = set()
        """The numbers of those of which no more must be written than what a report changes: they were settled."""
        self.is_new_list = False
        self.moved = False
        """Whether the row itself must be written."""
        self.finished = False
        self.rescheduled = False
        self.restated = False
        """Whether its final status became another one."""

    @property
    def id(self) -> NotificationId:
        """The notification's id, by which SQLite finds the row faster than by *seq*."""
        return self.progress.id

    def take(self, transaction: Transaction, step: Step) -> None:
        """Apply one step."""
        before, after = step.before, step.progress
        self.progress = after
        transaction.moves += step.moves
        self.is_new_list |= step.routed
        settled, changed = before.receipts or {}, step.changed
        for each in changed:
            was_settled = each.n in settled and not settled[each.n].is_open and each.n not in self.changed
            (self.reported if was_settled else self.changed).add(each.n)
        for word, n in delivery_changes(step, changed):
            transaction.tally(after.app, self.lane, word, n)
        self.moved |= step.routed or after.withdrawn != before.withdrawn
        if after.receipts is not None or after.is_final:
            self.due_at = None
        if after.status is not before.status:
            self._count(transaction, before.status, after.status)
            if step.finished:
                self.finished = self.moved = True
            elif before.is_final and not self.finished:
                self.restated = True

    def mark_withdrawn(self, why: str) -> None:
        """Mark it as withdrawn, so that what is still open gets no further attempt."""
        if not self.progress.is_final:
            self.progress = msgspec.structs.replace(self.progress, withdrawn=why)
            self.moved = True

    def put_off(self, n: int, due_at: Instant) -> None:
        """Set a due time for target *n* other than its settlement says."""
        receipts = dict(self.progress.receipts or {})
        receipts[n] = msgspec.structs.replace(receipts[n], due_at=due_at)
        self.progress = msgspec.structs.replace(self.progress, receipts=receipts)
        self.changed.add(n)

    def reschedule(self, at: Instant) -> None:
        """Give it another time as a whole, with its whole TTL after that."""
        self.due_at = at
        self.rescheduled = True

    def is_written(self, now: Instant) -> None:
        """Set no due time before this transaction began: nobody looks for it there any more (due_from.py)."""
        receipts = self.progress.receipts or {}
        for n in receipts if self.is_new_list else self.changed:
            due_at = receipts[n].due_at
            if due_at is not None and due_at < now:
                self.put_off(n, now)

    def _count(
        self, transaction: Transaction, before: NotificationStatus | None, after: NotificationStatus | None
    ) -> None:
        for status, delta in ((before, -1), (after, 1)):
            if status is not None:
                transaction.count(self.progress.app, self.lane, status, delta, self.job)


class PendingChanges:
    """The notifications of one transaction by id; one whose shard is another process's by now counts as unknown.

    So does one with a word that only a newer version knows: it is for that to change.
    """

    def __init__(
        self,
        transaction: Transaction,
        ids: Iterable[NotificationId],
        *,
        by_shard: bool = True,
        to_confirm: Collection[NotificationId] = (),
        receipts_locked: bool = False,
    ) -> None:
        """Read them; not *by_shard*: whoever changes them knows otherwise that they are this process's.

        Of those *to_confirm* the receipts are read also where they are final. *receipts_locked*: what of them comes
        due in this moment is claimed before they are read, or after this transaction (PostgreSQL).
        """
        self._transaction = transaction
        connection = transaction.connection
        found = select_in(connection, _FIND + connection.dialect.locked, list(dict.fromkeys(ids)))
        owned = transaction.owned if by_shard else None
        rows = [row for row in found if row[5] in LANES and row[6] in NOTIFICATION_STATUSES]
        of_this = [row for row in rows if owned is None or row[4] in owned or row[4] >= SHARDS or row[6] != _PENDING]
        routed = [row[1] for row in of_this if row[7] is None and (row[6] == _PENDING or row[1] in to_confirm)]
        receipts: dict[NotificationId, dict[int, Receipt]] = {one: {} for one in routed}
        for row in select_in(connection, _RECEIPTS + ROWS_LOCKED * receipts_locked, list(receipts)):
            receipt = receipt_of(row)
            receipts[receipt.notification_id][receipt.n] = receipt
        self._receipts = receipts
        self._rows = {row[1]: row for row in of_this}
        self._cases: dict[NotificationId, PendingChange] = {}

    def get(self, notification_id: NotificationId) -> PendingChange | None:
        """Return a notification, if it is known."""
        case = self._cases.get(notification_id)
        if case is None and (row := self._rows.get(notification_id)) is not None:
            case = self._cases[notification_id] = _case_of(row, self._receipts.get(notification_id))
        return case

    def finish(self, notification_id: NotificationId) -> Row | None:
        """Count a notification as sent from now on, and return its row as it is stored; somebody else writes it.

        None, and nothing happens, where it is unknown, or anything is stored of it but a row that waits to be routed.
        """
        row = self._rows.get(notification_id)
        if row is None or notification_id in self._cases or notification_id in self._receipts:
            return None
        if row[_STATUS] != _PENDING or row[_WITHDRAWN] is not None:
            return None
        self._rows[notification_id] = (*row[:_STATUS], NotificationStatus.SENT.value, None, *row[_WITHDRAWN:])
        return row

    def write(self) -> None:
        """Write everything that changed."""
        routed: list[Row] = []
        finished: list[Row] = []
        restated: defaultdict[NotificationStatus, list[int | NotificationId]] = defaultdict(list)
        connection = self._transaction.connection
        key = connection.dialect.row_key
        for case in self._cases.values():
            case.is_written(self._transaction.now)
            progress = case.progress
            if case.finished:
                reason = progress.withdrawn if progress.status is NotificationStatus.CANCELLED else None
                row = (progress.withdrawn, progress.status, reason, self._transaction.now, getattr(case, key))
                finished.append(row)
            elif case.restated:
                assert progress.status is not None, "it was final before"
                restated[progress.status].append(getattr(case, key))
            elif case.rescheduled:
                connection.execute(_RESCHEDULED.format(key=key), (case.due_at, getattr(case, key)))
            elif case.moved:
                routed.append((case.due_at, progress.withdrawn, getattr(case, key)))
        write_receipts(connection, self._cases.values())
        for sql, rows in ((_ROUTED, routed), (_FINISHED, finished)):
            if rows:
                connection.executemany(sql.format(key=key), rows)
        for status, keys in restated.items():
            execute_in(connection, _RESTATED.format(status=status.value, key=key), keys)


def write_receipts(connection: Connection, cases: Iterable[PendingChange]) -> None:
    """Write every receipt of *cases* that is new or changed; one that waits is leased from here, also of the log's."""
    new: list[Row] = []
    changed: list[Row] = []
    reported: list[Row] = []
    for case in cases:
        app, receipts = case.progress.app, case.progress.receipts or {}
        if case.is_new_list:
            new += [receipt_row(receipt, app, _shard(case, receipt), case.lane) for receipt in receipts.values()]
        else:
            changed += [receipt_row(receipts[n], app, _shard(case, receipts[n]), case.lane) for n in case.changed]
            reported += [reported_row(receipts[n]) for n in case.reported]
    for sql, rows in ((INSERT_RECEIPT, new), (REPLACE_RECEIPT, changed)):
        connection.insert_all(sql, RECEIPT_VALUES, rows)
    connection.update_all("receipt", REPORTED, RECEIPT_KEY, reported)


def _shard(case: PendingChange, receipt: Receipt) -> int:
    return case.shard if receipt.waits is None else case.shard % SHARDS


def _case_of(row: Row, receipts: dict[int, Receipt] | None) -> PendingChange:
    seq, notification_id, app, user_id, shard, lane, status, due_at, withdrawn, job = row
    progress = Progress(app, notification_id, user_id, NOTIFICATION_STATUSES[status], receipts, withdrawn)
    case = PendingChange(progress, seq, shard, LANES[lane], job)
    case.due_at = due_at
    return case
