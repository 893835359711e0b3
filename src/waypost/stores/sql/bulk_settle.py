"""Settling recipients of bulk jobs: their rows are written here for the first time, whole, with their receipts.

    sequence      moved on by the number of rows
    notification  INSERT: routed or final at once, its content is the job's
    receipt       INSERT
    bulk_piece    UPDATE of written; with the last recipient it is closed
    bulk_job      UPDATE of total where fewer or more were found than were enqueued
    bulk_count    the job's counts

From then on a recipient's notification is one like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.balance import Count
from waypost.domain.notification import Notification
from waypost.domain.progress import Progress
from waypost.domain.status import NotificationStatus
from waypost.ports.work import Settled
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.pending_changes import PendingChange, write_receipts
from waypost.stores.sql.plain_settlements import PlainSettlements
from waypost.stores.sql.rows import notification_row, seqs
from waypost.stores.sql.transaction import OperationKind, Transaction

_INSERT = (
    "INSERT INTO notification (seq, status, reason, finished_at, job, variables, id, app, caller, user_id, shard, lane,"
    " kind, urgency, guarantee, created_at, expires_at, ttl_ms, scheduled_at, retry_policy, device_ids, round)"
    " VALUES "
)
_SHARD = 4
"""The column of a notification's row that has its shard."""
_VALUES = f"({'?, ' * 21}1)"
_PIECE = "SELECT job, shard FROM bulk_piece WHERE seq = ?"
_WRITTEN = (
    "UPDATE bulk_piece SET written = written + ?1, open = CASE WHEN written + ?1 < ?2 THEN open ELSE 0 END"
    " WHERE seq = ?3 RETURNING written, expected, written = ?2"
)
_CORRECT = "UPDATE bulk_job SET total = total + ?, left_out = left_out + ? WHERE number = ?"


class PieceSettled(Struct, frozen=True):
    """The settlements of recipients of one piece, each with the values of their placeholders."""

    seq: int
    due: int
    """The number of rows that the piece has once it is done."""
    settled: tuple[tuple[Settled, bytes | None], ...]


class _Born(PendingChange):
    """A recipient's notification as it is first written."""

    __slots__ = ("columns", "variables")

    def __init__(self, seq: int, job: int, notification: Notification, variables: bytes | None) -> None:
        self.columns = notification_row(notification)
        progress = Progress(notification.app, notification.id, notification.user_id, None, None)
        shard: int = self.columns[_SHARD]
        super().__init__(progress, seq, shard, notification.lane, job)
        self.variables = variables

    def row(self, transaction: Transaction) -> Row:
        """Return the values that _INSERT binds."""
        at = transaction.now if self.finished else None
        return (self.seq, self.progress.status, None, at, self.job, self.variables, *self.columns)


def _run(transaction: Transaction, ops: Sequence[Sequence[PieceSettled]]) -> list[None]:
    connection, owned = transaction.connection, transaction.owned
    pieces = [piece for op in ops for piece in op]
    count = sum(len(piece.settled) for piece in pieces)
    numbers = iter(seqs(connection, count) if count else ())
    born: list[_Born] = []
    plain = PlainSettlements(transaction)
    for piece in pieces:
        job, shard = connection.execute(_PIECE, (piece.seq,)).fetchone()
        if owned is not None and shard not in owned:
            continue  # who has it by now writes those rows
        for settled, variables in piece.settled:
            case = _Born(next(numbers), job, settled.notification, variables)
            if settled.is_plain:
                plain.note(case.progress.app, case.lane, case.shard, settled)
                case.take(transaction, case.progress.end(NotificationStatus.SENT, transaction.now))
            else:
                case.take(transaction, settled.step_of(case.progress, transaction.now))
            born.append(case)
            transaction.tally(case.progress.app, case.lane, Count.RECIPIENTS, 1)
        _note_written(connection, job, piece)
    connection.insert_all(_INSERT, _VALUES, [case.row(transaction) for case in born])
    plain.write()
    write_receipts(connection, born)
    return [None] * len(ops)


SETTLE_RECIPIENTS: OperationKind[Sequence[PieceSettled], None] = OperationKind(
    "settle_recipients", _run, durable=False, patient=True
)


def _note_written(connection: Connection, job: int, piece: PieceSettled) -> None:
    count = len(piece.settled)
    written, expected, done = connection.execute(_WRITTEN, (count, piece.due, piece.seq)).fetchone()
    if done and written != expected:
        connection.execute(_CORRECT, (written - expected, max(0, expected - written), job))
