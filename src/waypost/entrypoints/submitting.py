"""A submission and its answer, as every entry point gives it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, assert_never

import msgspec
from msgspec import Meta, Struct

from waypost.domain.content import TemplateUse
from waypost.domain.dedup import said_hash, shown
from waypost.domain.errors import Conflict, ErrorCode, Fault, InvalidRequest, Unavailable, WaypostError
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import lane_of
from waypost.domain.plain import is_alone
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import IdempotencyKey, Submission
from waypost.domain.time import Instant, from_datetime
from waypost.entrypoints.decoding import checked
from waypost.entrypoints.gathering import Gathering
from waypost.pipeline.intake import Caller, Intake
from waypost.ports.views import Views
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate, InProgress, NotReplayable, Unwritten

BATCH_LIMIT = 1_000
"""The most items of one batch."""

Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"}, examples=["019c1234-5678-7abc-8def-0123456789ab"])]
Hash = Annotated[str, Meta(description="The start of a SHA-256, in hex.", examples=["9f86d081884c7d65"])]

Result = Acceptance | InvalidRequest
"""The answer of intake to a submission."""
_SCHEDULED, _PENDING = NotificationStatus.SCHEDULED, NotificationStatus.PENDING


class Submitted(Struct, frozen=True, omit_defaults=True):
    """An accepted notification, or the earlier one that it duplicates."""

    id: Annotated[Id, Meta(description="The notification's id; for a duplicate, the id of the first one.")]
    status: NotificationStatus
    content_hash: Annotated[
        Hash, Meta(description="A hash of title, body and data, or of the template's name and variables.")
    ]
    deduplicated: Annotated[bool, Meta(description="True for a duplicate: nothing new was accepted.")]
    record_id: Annotated[Id | None, Meta(description="The id of the record that a content duplicate leaves.")] = None


class InProgressElsewhere(WaypostError):
    """The error that the same idempotency key is in use; *retry_after_s* is when its answer should be known."""

    code = ErrorCode.IN_PROGRESS

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("a request with the same idempotency key is being accepted")
        self.retry_after_s = retry_after_s


def retry_after_s(error: BaseException) -> int | None:
    """Return in how many seconds the same request may succeed; None where that is not known, or never."""
    return error.retry_after_s if isinstance(error, Unavailable | InProgressElsewhere) else None


async def submit(
    intake: Intake, views: Views, caller: Caller, submissions: Sequence[Submission]
) -> list[Submitted | WaypostError]:
    """Accept each submission; one answer each, in order. Unavailable where none is accepted, as ``Intake.submit``."""
    results = await intake.submit(caller, submissions) if submissions else []
    return await _answers(intake, views, caller, submissions, results)


async def submit_gathered(
    intake: Intake, gathering: Gathering[Submission, Result], views: Views, caller: Caller, submission: Submission
) -> Submitted | WaypostError:
    """Accept one submission, as ``submit`` does; with those of its caller and lane that come in the same turn.

    Those with an idempotency key and those without are apart: where keys cannot be looked up the latter are accepted.
    """
    if intake.tracing is not None or is_alone(submission):
        return (await submit(intake, views, caller, [submission]))[0]
    lane = lane_of(submission.kind, submission.urgency)
    result = await gathering.submit(
        submission,
        (caller.app, caller.name, lane, submission.idempotency_key is None),
        partial(intake.submit, caller),
        partial(intake.has_room, caller.app, lane),
    )
    return (await _answers(intake, views, caller, [submission], [result]))[0]


async def _answers(
    intake: Intake, views: Views, caller: Caller, submissions: Sequence[Submission], results: Sequence[Result]
) -> list[Submitted | WaypostError]:
    """Answer each submission by what became of it."""
    firsts = [result.first_id for result in results if isinstance(result, Duplicate)]
    firsts += [
        result.id
        for each, result in zip(submissions, results, strict=True)
        if each.send_at is not None and isinstance(result, Accepted)
    ]
    statuses = await views.statuses(caller.app, firsts) if firsts else {}
    now = intake.clock.now()
    return [_answer(each, result, statuses, now) for each, result in zip(submissions, results, strict=True)]


def _answer(
    submission: Submission,
    result: Result,
    statuses: dict[NotificationId, NotificationStatus],
    now: Instant,
) -> Submitted | WaypostError:
    if isinstance(result, Accepted):
        status = _PENDING
        if submission.scheduled_at is not None or statuses:
            status = statuses.get(result.id) or _first_status(submission, now)
        return Submitted(format_id(result.id), status, _hash(submission), False)
    match result:
        case Duplicate(first_id, record_id):
            status = statuses.get(first_id, _PENDING)
            record = None if record_id is None else format_id(record_id)
            return Submitted(format_id(first_id), status, _hash(submission), True, record)
        case Conflicting(first_id):
            return Conflict(f"the idempotency key was used with another body, for {format_id(first_id)}")
        case InProgress(retry_after_ms):
            return InProgressElsewhere(max(1, -(-retry_after_ms // 1000)))
        case Unwritten(error):
            return error
        case InvalidRequest():
            return result
        case NotReplayable():
            return WaypostError("a submission was answered as a replay")
        case _:
            assert_never(result)


def _first_status(submission: Submission, now: Instant) -> NotificationStatus:
    later = submission.scheduled_at is not None and from_datetime(submission.scheduled_at) > now
    return _SCHEDULED if later else _PENDING


def _hash(submission: Submission) -> str:
    asked, use = submission.template, None
    if asked is not None:
        use = TemplateUse(asked.name, asked.version or 0, submission.variables, submission.locale)
    return shown(said_hash(submission.title, submission.body, submission.data, use))


def with_key(submission: Submission, key: str, at: str) -> Submission:
    """Add the idempotency key that came beside *submission*, under the name *at*."""
    if submission.idempotency_key not in (None, key):
        raise InvalidRequest((Fault("idempotency_key", f"differs from {at}"),))
    return msgspec.structs.replace(submission, idempotency_key=checked(IdempotencyKey, key, at))


def placed(error: InvalidRequest, place: str) -> InvalidRequest:
    """Name the faults of one item by the item's path in the whole, such as ``notifications[2]``."""
    faults = [fault if fault.path.startswith(place) else _inside(fault, place) for fault in error.faults]
    return InvalidRequest(tuple(faults), error.code)


def _inside(fault: Fault, place: str) -> Fault:
    return Fault(f"{place}.{fault.path}" if fault.path else place, fault.why)
