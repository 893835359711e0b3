"""The reads of bulk jobs, and of recipients who have no row of their own yet."""

from __future__ import annotations

from waypost.domain.bulk import JobId, JobState, notification_for, piece_of, recipient_id
from waypost.domain.ids import AppId, NotificationId, UserId, created_at, first_id_at
from waypost.domain.status import NotificationStatus
from waypost.domain.time import later
from waypost.ports.bulk import JobRecord, RecipientRecord
from waypost.ports.views import NotificationRecord
from waypost.stores.sql.bulk_load import PIECE_COLUMNS, PieceRow, read_audience, times_of
from waypost.stores.sql.bulk_rows import FROM_JOB, find_job, job_of, record_of
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.history import NEWEST_FIRST, SLICES
from waypost.stores.sql.rows import status_of

_NEWEST = JobId(b"\xff" * 16)

_MADE_AT = f"{FROM_JOB} WHERE created_at = ? AND app = ?"
_OF_APP = f"{FROM_JOB} WHERE app = ? AND id < ? ORDER BY id DESC LIMIT ?"
_OF_PIECE = (
    f"SELECT {PIECE_COLUMNS} FROM bulk_piece WHERE job = ?"  # noqa: S608 - a list of columns
    " AND (open = 1 OR (SELECT state FROM bulk_job WHERE number = bulk_piece.job) = 'cancelled')"
)
_PIECE_BY_N = f"{_OF_PIECE} AND n = ?"
_PIECE_BY_USER = f"{_OF_PIECE} AND after_user < ? AND until_user >= ?"
_OF_USER = (
    f"SELECT id, status FROM {SLICES}"  # noqa: S608 - how history is read
    f" WHERE app = ?1 AND user_id = ?2 AND id < ?3 AND id >= ?4 AND job = ?5 {NEWEST_FIRST} LIMIT 1"
)
_LISTED = "SELECT 1 FROM bulk_recipient WHERE job = ? AND user_id = ?"


class SqlBulkViews:
    """The reads of bulk jobs: see ports.bulk.BulkViews."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def show(self, app: AppId, job: JobId) -> JobRecord | None:
        """See BulkViews."""
        return await self._database.read(lambda connection: _show(connection, app, job))

    async def list(self, app: AppId, before: JobId | None, n: int) -> list[JobRecord]:
        """See BulkViews."""
        bound = (app, before or _NEWEST, n)
        return await self._database.read(
            lambda connection: [record_of(connection, row) for row in connection.execute(_OF_APP, bound).fetchall()]
        )

    async def recipient(self, app: AppId, job: JobId, user_id: UserId) -> RecipientRecord | None:
        """See BulkViews."""
        return await self._database.read(lambda connection: _recipient(connection, app, job, user_id))


def _show(connection: Connection, app: AppId, job: JobId) -> JobRecord | None:
    row = find_job(connection, app, job)
    return None if row is None else record_of(connection, row)


def _recipient(connection: Connection, app: AppId, job_id: JobId, user_id: UserId) -> RecipientRecord | None:
    row = find_job(connection, app, job_id)
    if row is None:
        return None
    job = job_of(row)
    ids = (first_id_at(later(job.created_at, 1)), first_id_at(job.created_at))
    found = connection.execute(_OF_USER, (app, user_id, *ids, row[0])).fetchone()
    if found is not None:
        return RecipientRecord(_read_as(found[1]), found[0])
    piece = connection.execute(_PIECE_BY_USER, (row[0], user_id, user_id)).fetchone()
    if piece is not None:
        told = {each.user_id for each in read_audience(connection, job, PieceRow(*piece))}
        return RecipientRecord(_waits(row), recipient_id(job_id, piece[2], user_id)) if user_id in told else None
    listed = connection.execute(_LISTED, (row[0], user_id)).fetchone()
    return RecipientRecord(_waits(row)) if listed is not None and not row[5] else None


def waiting_recipient(connection: Connection, app: AppId, notification_id: NotificationId) -> NotificationRecord | None:
    """Find the notification of a recipient who is enqueued and has no row yet, from the id alone."""
    row = connection.execute(_MADE_AT, (created_at(notification_id), app)).fetchone()
    if row is None:
        return None
    piece = connection.execute(_PIECE_BY_N, (row[0], piece_of(notification_id))).fetchone()
    if piece is None:
        return None
    job, found = job_of(row), PieceRow(*piece)
    for each in read_audience(connection, job, found):
        if recipient_id(job.id, found.n, each.user_id) == notification_id:
            when = times_of(connection, job, [each.user_id], job.created_at)
            told = notification_for(job, found.n, each.user_id, each.variables, *when(each.user_id))
            return NotificationRecord(told, _waits(row), finished_at=row[8])
    return None


def _waits(row: Row) -> NotificationStatus:
    is_cancelled = row[3] == JobState.CANCELLED
    return NotificationStatus.CANCELLED if is_cancelled else NotificationStatus.PENDING


def _read_as(stored: str) -> NotificationStatus:
    return NotificationStatus.PROCESSING if stored == NotificationStatus.PENDING else status_of(stored)
