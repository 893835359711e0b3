"""Routes of bulk jobs: make one, give it its list, follow it, stop it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, get, post, put
from litestar.params import HeaderParameter, RawBody

from waypost.domain.bulk import JobId, JobOrder
from waypost.domain.bulk_submission import BulkSubmission
from waypost.domain.errors import ErrorCode, NotFound
from waypost.domain.ids import NotificationId, UserId, format_id, parse_id
from waypost.domain.submission import IdempotencyKey
from waypost.entrypoints.access import READS, SENDS
from waypost.entrypoints.decoding import checked, decode
from waypost.entrypoints.rest import cursors
from waypost.entrypoints.rest.answers import WRITE_CODES, answer, speaks
from waypost.entrypoints.rest.api import Call, api_of
from waypost.entrypoints.rest.parameters import CursorGiven, Limit, PathIdentity, PathJob, identity_in
from waypost.entrypoints.rest.recipient_lists import recipients_in
from waypost.entrypoints.rest.recording import record
from waypost.features.bulk.views import BulkPage, BulkRecipient, BulkView, job_view
from waypost.ports.audit import Act

_E = ErrorCode
_submission = msgspec.json.Decoder(BulkSubmission)

HeaderKey = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", description="A repeated key returns the existing job.", required=False),
]


@post(
    "/v1/bulk",
    tags=["Bulk"],
    summary="Send to many recipients",
    operation_id="submitBulk",
    opt=speaks(
        {202: BulkView, 200: BulkView},
        SENDS,
        body=BulkSubmission,
        example={
            "notification": {"title": "Hello {{name}}", "body": "The new season begins."},
            "recipients": ["user-1", {"user_id": "user-2", "name": "Bo"}],
            "variables": {"name": "friend"},
            "rate": 1000,
        },
        meanings={202: "Accepted: durable, and begun.", 200: "The same key made this job before."},
        codes=(_E.IDEMPOTENCY_CONFLICT, _E.TOO_LARGE, *WRITE_CODES),
    ),
)
async def submit(request: Call, body: RawBody, header_key: HeaderKey = None) -> Response[bytes]:
    """Answer at once, whatever the number of recipients. They are enqueued and sent to in the background.

    Each recipient gets one notification, however often a list names them.
    """
    key = None if header_key is None else checked(IdempotencyKey, header_key, "Idempotency-Key")
    asked = decode(_submission, body)
    made = await api_of(request).bulk.submit(request.user.app, request.user.name, asked, key)
    return answer(202 if made.new else 200, job_view(made.record, api_of(request).clock.now()))


@put(
    "/v1/bulk/{job_id:str}/recipients",
    tags=["Bulk"],
    summary="Upload a job's list",
    operation_id="uploadRecipients",
    status_code=202,
    opt=speaks(
        {202: BulkView},
        SENDS,
        meanings={202: "All of it is stored, and the job has begun."},
        codes=(_E.NOT_FOUND, _E.WRONG_STATE, _E.TOO_LARGE, _E.UNSUPPORTED_MEDIA_TYPE, *WRITE_CODES),
    ),
)
async def upload(request: Call, job_id: PathJob) -> Response[bytes]:
    """Take NDJSON (`application/x-ndjson`): one object a line, `user_id` and variables; or CSV (`text/csv`): a
    head line that names the columns, one of them `user_id`.

    The list is processed while it is received. If a line is refused or the connection breaks, upload it again:
    recipients already known get no second notification.
    """
    api = api_of(request)
    given = recipients_in(request.scope["headers"], request.receive, api.settings)
    record = await api.bulk.upload(request.user.app, job_in(job_id), given)
    return answer(202, job_view(record, api.clock.now()))


@get(
    "/v1/bulk/{job_id:str}",
    tags=["Bulk"],
    summary="Look up a job",
    operation_id="getBulk",
    opt=speaks({200: BulkView}, READS, codes=(_E.NOT_FOUND,)),
)
async def look_up(request: Call, job_id: PathJob) -> Response[bytes]:
    """Return the job's state and the number of recipients by status."""
    record = await api_of(request).bulk.show(request.user.app, job_in(job_id))
    return answer(200, job_view(record, api_of(request).clock.now()))


@get(
    "/v1/bulk",
    tags=["Bulk"],
    summary="List jobs",
    operation_id="listBulk",
    opt=speaks({200: BulkPage}, READS, codes=(_E.INVALID_CURSOR,)),
)
async def listed(request: Call, cursor: CursorGiven = None, limit: Limit = 50) -> Response[bytes]:
    """List jobs, newest first."""
    api = api_of(request)
    before = None if cursor is None else JobId(cursors.notification(cursor))
    records = await api.bulk.views.list(request.user.app, before, limit)
    following = cursors.of_id(records[-1].job.id) if len(records) == limit else None
    return answer(200, BulkPage(tuple(job_view(record, api.clock.now()) for record in records), following))


@get(
    "/v1/bulk/{job_id:str}/recipients/{user_id:str}",
    tags=["Bulk"],
    summary="Look up a recipient",
    operation_id="getBulkRecipient",
    opt=speaks({200: BulkRecipient}, READS, codes=(_E.NOT_FOUND,)),
)
async def recipient(request: Call, job_id: PathJob, user_id: PathIdentity) -> Response[bytes]:
    """Return one recipient's status; the notification's id is known once the recipient is enqueued."""
    user = UserId(identity_in(user_id, "user_id"))
    found = await api_of(request).bulk.views.recipient(request.user.app, job_in(job_id), user)
    if found is None:
        raise NotFound("no such recipient")
    own_id = None if found.notification_id is None else format_id(found.notification_id)
    return answer(200, BulkRecipient(user, found.status, own_id))


_ACTS = {JobOrder.PAUSE: Act.BULK_PAUSED, JobOrder.RESUME: Act.BULK_RESUMED, JobOrder.CANCEL: Act.BULK_CANCELLED}
_ORDERED = speaks({200: BulkView}, SENDS, codes=(_E.NOT_FOUND, _E.WRONG_STATE, *WRITE_CODES))


@post(
    "/v1/bulk/{job_id:str}/pause",
    tags=["Bulk"],
    summary="Pause a job",
    operation_id="pauseBulk",
    status_code=200,
    opt=_ORDERED,
)
async def pause(request: Call, job_id: PathJob) -> Response[bytes]:
    """Enqueue no more recipients until it is resumed. Deliveries under way and retries go on, and so does the TTL."""
    return await _order(request, job_id, JobOrder.PAUSE)


@post(
    "/v1/bulk/{job_id:str}/resume",
    tags=["Bulk"],
    summary="Resume a job",
    operation_id="resumeBulk",
    status_code=200,
    opt=_ORDERED,
)
async def resume(request: Call, job_id: PathJob) -> Response[bytes]:
    """Continue where the job was paused."""
    return await _order(request, job_id, JobOrder.RESUME)


@post(
    "/v1/bulk/{job_id:str}/cancel",
    tags=["Bulk"],
    summary="Cancel a job",
    operation_id="cancelBulk",
    status_code=200,
    opt=_ORDERED,
)
async def cancel(request: Call, job_id: PathJob) -> Response[bytes]:
    """Enqueue no more recipients and cancel waiting retries. Deliveries under way end with their present attempt."""
    return await _order(request, job_id, JobOrder.CANCEL)


async def _order(request: Call, job_id: str, order: JobOrder) -> Response[bytes]:
    job = job_in(job_id)
    await record(request, _ACTS[order], [format_id(NotificationId(job))])
    ordered = await api_of(request).bulk.order(request.user.app, job, order)
    return answer(200, job_view(ordered, api_of(request).clock.now()))


def job_in(path_part: str) -> JobId:
    """Read the job's id from a path; NotFound where it cannot be one."""
    try:
        return JobId(parse_id(path_part))
    except ValueError:
        raise NotFound("no such job") from None


ROUTES = [submit, upload, listed, look_up, recipient, pause, resume, cancel]
