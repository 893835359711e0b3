"""Bulk jobs on SQL: made, filled, ordered about, walked and cleared away (the walk itself is in bulk_walk.py).

bulk_job        one row each     content  one row each, by the job's number     bulk_recipient  a list's, by user
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from waypost.domain.bulk import ENDED, JOB_TRANSITIONS, BulkJob, JobId, JobOrder, JobState, Recipient
from waypost.domain.ids import AppId, NotificationId, first_id_at
from waypost.domain.time import DAY_MS, Instant, later
from waypost.ports.bulk import Enqueued, JobConflict, JobCreated, Walking
from waypost.stores.sql.bulk_rows import FROM_JOB, encoded, find_job, has_ended, job_body, record_of
from waypost.stores.sql.bulk_walk import ENQUEUE, next_step
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection
from waypost.stores.sql.rows import content_body, seqs
from waypost.stores.sql.transaction import Op, OperationKind, Result, Transaction

UPLOAD_LIMIT_MS = DAY_MS
"""Milliseconds after which a job is cancelled whose list is not complete by then."""

_BY_KEY = "SELECT id, app, body_hash FROM bulk_job WHERE key = ?"
_TAKEN = "SELECT max(created_at) FROM bulk_job"
_INSERT = """\
INSERT INTO bulk_job (number, id, app, created_at, key, body_hash, job, state, walked_to, walked, pieces, total,
    left_out, uploaded) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, 0, 0, 0)
"""
_CONTENT = "INSERT INTO content (seq, body) VALUES (?, ?)"
_LISTED = "SELECT count(*) FROM bulk_recipient WHERE job = ? AND user_id IN ({texts})"
_ADD = "INSERT OR REPLACE INTO bulk_recipient (job, user_id, variables) VALUES (?, ?, ?)"
_ADDED = "UPDATE bulk_job SET uploaded = uploaded + ? WHERE number = ?"
_MOVE = "UPDATE bulk_job SET state = ?, finished_at = ?, failure = ? WHERE number = ?"
_FINISH = "UPDATE bulk_job SET state = 'finished', finished_at = ? WHERE number = ? AND finished_at IS NULL"
_GIVE_UP = "UPDATE bulk_job SET state = 'cancelled', finished_at = ? WHERE number = ? AND state = 'uploading'"
_CLOSE = "UPDATE bulk_piece SET open = 0 WHERE job = ? AND open = 1"
_RUNNING = """\
SELECT id, app, job, walked, (
    SELECT CAST(coalesce(sum(expected - written), 0) AS BIGINT)
    FROM bulk_piece INDEXED BY bulk_piece_open WHERE job = number AND open = 1
) AS waiting
FROM bulk_job INDEXED BY bulk_job_open WHERE finished_at IS NULL AND state = 'running' ORDER BY waiting
"""
_DONE = """\
SELECT number FROM bulk_job INDEXED BY bulk_job_open WHERE finished_at IS NULL AND walked = 1
AND NOT EXISTS (SELECT 1 FROM bulk_piece WHERE job = number AND open = 1)
AND NOT EXISTS (SELECT 1 FROM bulk_count WHERE job = number AND status = 'pending' AND n > 0)
"""
_LATE = """\
SELECT number FROM bulk_job INDEXED BY bulk_job_open
WHERE finished_at IS NULL AND state = 'uploading' AND created_at < ?
"""
_NEXT_LIST = "SELECT min(job) FROM bulk_recipient WHERE job > ?"
_STATE = "SELECT state FROM bulk_job WHERE number = ?"
_DROP_LIST = """\
DELETE FROM bulk_recipient WHERE job = ?1
AND user_id IN (SELECT user_id FROM bulk_recipient WHERE job = ?1 ORDER BY user_id LIMIT ?2)
"""
_OPEN_OF_CANCELLED = """\
SELECT notification.app, notification.id
FROM bulk_count JOIN bulk_job ON number = bulk_count.job AND state = 'cancelled'
CROSS JOIN notification INDEXED BY notification_of_job ON notification.job = number
WHERE bulk_count.status = 'pending' AND n > 0 AND notification.finished_at IS NULL AND withdrawn IS NULL LIMIT ?
"""
_OLD = "SELECT number, created_at FROM bulk_job WHERE finished_at < ? AND created_at < ?"
_LEFT = "SELECT 1 FROM notification WHERE id >= ? AND id < ? AND job = ? LIMIT 1"


class SqlBulk:
    """The bulk jobs of the store: see ports.bulk.Bulk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, job: BulkJob, key: bytes | None, body_hash: bytes) -> JobCreated | JobConflict:
        """See Bulk."""
        return await self._write(_CREATING, _New(job, key, body_hash))

    async def add(self, app: AppId, job: JobId, recipients: Sequence[Recipient]) -> bool:
        """See Bulk."""
        return await self._write(_ADDING, _More(app, job, tuple(recipients)), len(recipients))

    async def order(
        self, app: AppId, job: JobId, order: JobOrder, now: Instant, failure: str | None = None
    ) -> JobState | None:
        """See Bulk."""
        return await self._write(_ORDERING, _Ordered(app, job, order, now, failure))

    async def running(self) -> list[Walking]:
        """See Bulk."""
        rows = await self._database.read(lambda connection: connection.execute(_RUNNING).fetchall())
        return [Walking(JobId(row[0]), row[1], _rate_in(row[2]), bool(row[3]), row[4]) for row in rows]

    async def enqueue(self, app: AppId, job: JobId, most: int, piece: int) -> Enqueued:
        """See Bulk."""
        step = await self._database.read(lambda connection: next_step(connection, app, job, most, piece))
        if step is None:
            return Enqueued(0, moved=False)
        return await asyncio.shield(self._database.commits.submit(ENQUEUE, step, len(step.pieces) + 1))

    async def tidy(self, now: Instant, n: int) -> list[tuple[AppId, NotificationId]]:
        """See Bulk."""
        leftovers, open_ = await self._database.read(lambda connection: _leftovers(connection, now, n))
        if leftovers.done or leftovers.late or leftovers.over is not None:
            await self._write(_TIDYING, leftovers, n)
        return open_

    async def drop_before(self, before: Instant) -> int:
        """See Bulk."""
        return await self._write(_DROPPING, before)

    async def _write(self, kind: OperationKind[Op, Result], op: Op, rows: int = 1) -> Result:
        return await asyncio.shield(self._database.commits.submit(kind, op, rows))


class _New(Struct, frozen=True):
    job: BulkJob
    key: bytes | None
    body_hash: bytes


class _More(Struct, frozen=True):
    app: AppId
    job: JobId
    recipients: tuple[Recipient, ...]


class _Ordered(Struct, frozen=True):
    app: AppId
    job: JobId
    order: JobOrder
    now: Instant
    failure: str | None


class _Leftovers(Struct, frozen=True):
    """The leftovers to clear away: jobs to finish, uploads that were given up, the list of one that has ended."""

    done: tuple[int, ...]
    late: tuple[int, ...]
    over: int | None
    now: Instant
    n: int


_job = msgspec.msgpack.Decoder(BulkJob).decode


def _rate_in(body: bytes) -> int | None:
    """Read the rate that a job asks for; None for an unreadable one: its walk reports that, and it alone fails."""
    try:
        return _job(body).rate
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _create(transaction: Transaction, ops: Sequence[_New]) -> list[JobCreated | JobConflict]:
    return [_create_one(transaction.connection, op) for op in ops]


def _create_one(connection: Connection, new: _New) -> JobCreated | JobConflict:
    known = connection.execute(_BY_KEY, (new.key,)).fetchone() if new.key is not None else None
    if known is not None:
        if known[2] != new.body_hash:
            return JobConflict(known[0])
        found = find_job(connection, known[1], known[0])
        assert found is not None, "it was just read"
        return JobCreated(record_of(connection, found), new=False)
    job = _at_an_instant_of_its_own(connection, new.job)
    (number,) = seqs(connection, 1)
    state = JobState.UPLOADING if job.has_list or job.held else JobState.RUNNING
    row = (number, job.id, job.app, job.created_at, new.key, new.body_hash, job_body(job), str(state))
    connection.execute(_INSERT, row)
    connection.execute(_CONTENT, (number, content_body(job.content)))
    made = connection.execute(f"{FROM_JOB} WHERE number = ?", (number,)).fetchone()
    return JobCreated(record_of(connection, made))


def _at_an_instant_of_its_own(connection: Connection, job: BulkJob) -> BulkJob:
    """Give the job an instant of its own: the ids of its recipients begin with it, and lead back to it."""
    newest = Instant(connection.execute(_TAKEN).fetchone()[0] or 0)
    if job.created_at > newest:
        return job
    at = later(newest, 1)
    moved = JobId(at.to_bytes(6, "big") + job.id[6:])
    return msgspec.structs.replace(job, id=moved, created_at=at)


def _add(transaction: Transaction, ops: Sequence[_More]) -> list[bool]:
    return [_add_to_one(transaction.connection, op) for op in ops]


def _add_to_one(connection: Connection, more: _More) -> bool:
    row = find_job(connection, more.app, more.job)
    if row is None or row[3] != JobState.UPLOADING:
        return False
    last = {each.user_id: each for each in more.recipients}
    asked = (row[0], msgspec.json.encode(list(last)).decode())
    listed = connection.execute(_LISTED.format(texts=connection.dialect.texts), asked).fetchone()[0]
    rows = [(row[0], each.user_id, encoded(each.variables) if each.variables else None) for each in last.values()]
    connection.executemany(_ADD, rows)
    connection.execute(_ADDED, (len(last) - listed, row[0]))
    return True


def _order(transaction: Transaction, ops: Sequence[_Ordered]) -> list[JobState | None]:
    return [_order_one(transaction.connection, op) for op in ops]


def _order_one(connection: Connection, op: _Ordered) -> JobState | None:
    row = find_job(connection, op.app, op.job)
    if row is None:
        return None
    before = JobState(row[3])
    after = JOB_TRANSITIONS[before].get(op.order, before)
    if after is not before:
        connection.execute(_MOVE, (str(after), op.now if after in ENDED else None, op.failure, row[0]))
        if after is JobState.CANCELLED:
            connection.execute(_CLOSE, (row[0],))
    return after


def _leftovers(connection: Connection, now: Instant, n: int) -> tuple[_Leftovers, list[tuple[AppId, NotificationId]]]:
    done = tuple(row[0] for row in connection.execute(_DONE))
    late = tuple(row[0] for row in connection.execute(_LATE, (later(now, -UPLOAD_LIMIT_MS),)))
    open_ = [(row[0], row[1]) for row in connection.execute(_OPEN_OF_CANCELLED, (n,))]
    return _Leftovers(done, late, _list_of_an_ended_job(connection), now, n), open_


def _list_of_an_ended_job(connection: Connection) -> int | None:
    number = connection.execute(_NEXT_LIST, (-1,)).fetchone()[0]
    while number is not None:
        state = connection.execute(_STATE, (number,)).fetchone()
        if state is None or has_ended(state[0]):
            return int(number)
        number = connection.execute(_NEXT_LIST, (number,)).fetchone()[0]
    return None


def _tidy(transaction: Transaction, ops: Sequence[_Leftovers]) -> list[None]:
    connection = transaction.connection
    for op in ops:
        connection.executemany(_FINISH, [(op.now, number) for number in op.done])  # not ordered about since it was read
        connection.executemany(_GIVE_UP, [(op.now, number) for number in op.late])
        if op.over is not None:
            connection.execute(_DROP_LIST, (op.over, op.n))
    return [None] * len(ops)


def _drop(transaction: Transaction, ops: Sequence[Instant]) -> list[int]:
    return [_drop_old(transaction.connection, before) for before in ops]


def _drop_old(connection: Connection, before: Instant) -> int:
    dropped = 0
    for number, created_at in connection.execute(_OLD, (before, before)).fetchall():
        first, end = first_id_at(created_at), first_id_at(later(created_at, 1))
        if connection.execute(_LEFT, (first, end, number)).fetchone() is None:
            for table, key in (
                ("bulk_piece", "job"),
                ("bulk_count", "job"),
                ("content", "seq"),
                ("bulk_job", "number"),
            ):
                connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (number,))  # noqa: S608 - names of ours
            dropped += 1
    return dropped


_CREATING = OperationKind("bulk_create", _create, durable=True, ordered=True)
_ADDING = OperationKind("bulk_add", _add, durable=True)
_ORDERING = OperationKind("bulk_order", _order, durable=True)
_TIDYING = OperationKind("bulk_tidy", _tidy, durable=False)
_DROPPING = OperationKind("bulk_drop", _drop, durable=False)
