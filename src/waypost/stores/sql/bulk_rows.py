"""Bulk jobs as the domain's values, and back; the columns are explained in schema.py."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from waypost.domain.bulk import ENDED, BulkJob, JobId, JobState
from waypost.domain.content import Content
from waypost.domain.ids import AppId
from waypost.domain.status import NotificationStatus
from waypost.ports.bulk import JobRecord
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.rows import content_of, status_of

JOB = "number, job, content.body, state, uploaded, walked, total, left_out, finished_at, walked_to, pieces, failure"
"""The columns that ``record_of`` and ``job_of`` read."""
FROM_JOB = f"SELECT {JOB} FROM bulk_job JOIN content ON content.seq = bulk_job.number"  # noqa: S608 - columns

_COUNTS = "SELECT status, n FROM bulk_count WHERE job = ?"

_encode = msgspec.msgpack.Encoder().encode
_job = msgspec.msgpack.Decoder(BulkJob).decode


def job_body(job: BulkJob) -> bytes:
    """Encode a job as stored: its content lies beside it, once."""
    return _encode(msgspec.structs.replace(job, content=Content()))


def job_of(row: Row) -> BulkJob:
    """Read the job in a row of JOB."""
    return msgspec.structs.replace(_job(row[1]), content=content_of(row[2]))


def find_job(connection: Connection, app: AppId, job: JobId) -> Row | None:
    """Find the row of JOB of a job, if the app has such a one."""
    row: Row | None = connection.execute(f"{FROM_JOB} WHERE id = ? AND app = ?", (job, app)).fetchone()
    return row


def record_of(connection: Connection, row: Row) -> JobRecord:
    """Build the record of a job; recipients without a record are pending, or cancelled with the job."""
    counts: Counter[NotificationStatus] = Counter()
    with_record = 0
    for status, n in connection.execute(_COUNTS, (row[0],)):
        with_record += n
        if n:
            named = status_of(status)
            counts[NotificationStatus.PROCESSING if named is NotificationStatus.PENDING else named] += n
    state, total = JobState(row[3]), row[6]
    if total > with_record:
        waits = NotificationStatus.CANCELLED if state is JobState.CANCELLED else NotificationStatus.PENDING
        counts[waits] += total - with_record
    failure = row[11] if state is JobState.FAILED else None
    return JobRecord(job_of(row), state, row[4], bool(row[5]), total, row[7], counts, row[8], failure)


def has_ended(state: str) -> bool:
    """Tell whether a stored state is final."""
    return JobState(state) in ENDED


def encoded(value: Any) -> bytes:
    """Encode variables as stored."""
    return _encode(value)
