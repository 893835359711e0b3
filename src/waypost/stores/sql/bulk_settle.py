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
from waypost.domain.moves import NotificationMoved
from waypost.domain.notification import Notification
from waypost.domain.progress import Progress
from waypost.domain.status import NotificationStatus
from waypost.ports.work import Settled
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.history import NotificationInsert
from waypost.stores.sql.pending_changes import PendingChange, write_receipts
from waypost.stores.sql.plain_settlements import PlainSettlements
from waypost.stores.sql.rows import notification_row, seqs
from waypost.stores.sql.transaction import OperationKind, Transaction

_INSERT = NotificationInsert(
    "seq, status, reason, finished_at, job, variables, id, app, caller, user_id, shard, lane, kind, urgency, guarantee,"
    " created_at, expires_at, ttl_ms, scheduled_at, retry_policy, device_ids, collapses, round",
    f"{'?, ' * 22}1",
    id_at=6,
)
_SHARD = 4
"""The column of a notification's row that has its shard."""
_SENT = NotificationStatus.SENT
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
    rows: list[Row] = []
    born: list[_Born] = []
    plain = PlainSettlements(transaction)
    for piece in pieces:
        job, shard = connection.execute(_PIECE, (piece.seq,)).fetchone()
        if owned is not None and shard not in owned:
            continue  # who has it by now writes those rows
        before = len(rows)
        for settled, variables in piece.settled:
            if settled.is_plain:
                rows.append(_sent_row(transaction, plain, next(numbers), job, settled, variables))
            else:
                born.append(_born(transaction, next(numbers), job, settled, variables))
        _count(transaction, job, piece, len(rows) - before)
        _note_written(connection, job, piece)
    _INSERT.write(connection, rows + [case.row(transaction) for case in born])
    plain.write()
    write_receipts(connection, born)
    return [None] * len(ops)


def _sent_row(
    transaction: Transaction, plain: PlainSettlements, seq: int, job: int, settled: Settled, variables: bytes | None
) -> Row:
    """Write what follows from a recipient whose targets were all taken at once; return what _INSERT binds."""
    notification, now = settled.notification, transaction.now
    columns = notification_row(notification)
    app, notification_id, user_id = notification.app, notification.id, notification.user_id
    plain.note(app, notification.lane, columns[_SHARD], settled)
    transaction.moves.append(NotificationMoved(app, notification_id, user_id, None, _SENT, now))
    return (seq, _SENT, None, now, job, variables, *columns)


def _born(transaction: Transaction, seq: int, job: int, settled: Settled, variables: bytes | None) -> _Born:
    case = _Born(seq, job, settled.notification, variables)
    case.take(transaction, settled.step_of(case.progress, transaction.now))
    return case


def _count(transaction: Transaction, job: int, piece: PieceSettled, sent: int) -> None:
    """Count the recipients of a piece, and how many of them were *sent* to in full at once."""
    if not piece.settled:
        return
    app, lane = piece.settled[0][0].notification.app, piece.settled[0][0].notification.lane
    transaction.tally(app, lane, Count.RECIPIENTS, len(piece.settled))
    if sent:
        transaction.count(app, lane, _SENT, sent, job)


SETTLE_RECIPIENTS: OperationKind[Sequence[PieceSettled], None] = OperationKind(
    "settle_recipients", _run, durable=False, patient=True
)


def _note_written(connection: Connection, job: int, piece: PieceSettled) -> None:
    count = len(piece.settled)
    written, expected, done = connection.execute(_WRITTEN, (count, piece.due, piece.seq)).fetchone()
    if done and written != expected:
        connection.execute(_CORRECT, (written - expected, max(0, expected - written), job))
