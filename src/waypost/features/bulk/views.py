"""Bulk jobs as the API shows them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.domain.bulk import ENDED, JobState
from waypost.domain.content import Content
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant, isoformat
from waypost.entrypoints.rest.views import Cursor, Timestamp
from waypost.entrypoints.submitting import Id
from waypost.ports.bulk import JobRecord


class BulkView(Struct, frozen=True):
    """A job and its progress; each recipient is in exactly one of *counts*."""

    id: Id
    state: JobState
    caller: str
    created_at: Timestamp
    expires_at: Timestamp
    finished_at: Timestamp | None
    failure: Annotated[
        str | None, Meta(description="For a `failed` job, the kind of error that its last step ended with.")
    ]
    rate: Annotated[int | None, Meta(description="The most recipients per second, as requested.")]
    uploaded: Annotated[int, Meta(description="Recipients on its list; 0 for a job on the registry.")]
    enqueued: Annotated[int, Meta(description="Recipients found so far; all of them once `walked` is true.")]
    walked: bool
    left_out: Annotated[int, Meta(description="Recipients who had opted out or been erased; they are in no count.")]
    counts: Annotated[
        dict[NotificationStatus, int],
        Meta(description="Recipients by their notification's status; `pending` ones are enqueued and not yet sent to."),
    ]
    per_second: Annotated[
        float, Meta(description="Recipients settled per second, from the job's creation to now or its end.")
    ]
    seconds_left: Annotated[
        int | None, Meta(description="Estimated seconds to the end at this speed; null while unknown.")
    ]
    content: Content


class BulkPage(Struct, frozen=True):
    """Jobs, newest first."""

    items: tuple[BulkView, ...]
    next: Cursor


class BulkRecipient(Struct, frozen=True):
    """The status of one recipient of a job."""

    user_id: str
    status: NotificationStatus
    notification_id: Id | None


_UNSETTLED = (NotificationStatus.PENDING, NotificationStatus.PROCESSING)


def job_view(record: JobRecord, now: Instant) -> BulkView:
    """Describe a job and its progress, with its rate until *now*."""
    job = record.job
    settled = sum(n for status, n in record.counts.items() if status not in _UNSETTLED)
    took_ms = max(1, (record.finished_at or now) - job.created_at)
    per_second = settled * 1000 / took_ms
    return BulkView(
        id=format_id(NotificationId(job.id)),
        state=record.state,
        caller=job.caller,
        created_at=isoformat(job.created_at),
        expires_at=isoformat(job.expires_at),
        finished_at=None if record.finished_at is None else isoformat(record.finished_at),
        failure=record.failure,
        rate=job.rate,
        uploaded=record.uploaded,
        enqueued=record.total,
        walked=record.walked,
        left_out=record.left_out,
        counts=dict(record.counts),
        per_second=round(per_second, 1),
        seconds_left=_seconds_left(record, settled, per_second),
        content=job.content,
    )


def _seconds_left(record: JobRecord, settled: int, per_second: float) -> int | None:
    if record.state in ENDED:
        return 0
    is_known = record.walked or record.uploaded > 0
    if record.state is not JobState.RUNNING or not is_known or not per_second:
        return None
    everyone = record.total if record.walked else record.uploaded - record.left_out
    return round(max(0, everyone - settled) / per_second)
