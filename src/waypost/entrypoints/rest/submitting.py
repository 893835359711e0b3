"""Submissions as REST sees them: bytes in, one answer each out. The hot path: no framework below this line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, assert_never

import msgspec
from msgspec import Meta, Raw, Struct

from waypost.domain.dedup import content_hash, shown
from waypost.domain.errors import Conflict, Fault, InvalidRequest, WaypostError
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Content
from waypost.domain.status import NotificationStatus
from waypost.domain.submission import IdempotencyKey, Submission
from waypost.domain.time import Instant, from_datetime
from waypost.entrypoints.decoding import checked, decode
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.bodies import RawBatch
from waypost.entrypoints.rest.problems import InProgressElsewhere, Problem, problem_of
from waypost.entrypoints.rest.views import Hash, Id
from waypost.pipeline.intake import Caller
from waypost.ports.work import Acceptance, Accepted, Conflicting, Duplicate, InProgress, NotReplayable


class Submitted(Struct, frozen=True, omit_defaults=True):
    """An accepted notification, or the one that said the same before."""

    id: Annotated[
        Id, Meta(description="Of the notification that is (or was) delivered; the first one's id if repeated.")
    ]
    status: NotificationStatus
    content_hash: Annotated[Hash, Meta(description="Over title, body and data, the content that dedup compares.")]
    deduplicated: Annotated[bool, Meta(description="True: said before, nothing new was accepted.")]
    record_id: Annotated[Id | None, Meta(description="The small record that a content duplicate leaves.")] = None


class BatchResult(Struct, frozen=True, omit_defaults=True):
    """What became of one item: either *notification*, or the *error* that refused this item alone."""

    notification: Submitted | None = None
    error: Problem | None = None


class BatchAnswer(Struct, frozen=True):
    """One result per item, in order."""

    accepted: Annotated[int, Meta(description="Items newly accepted.")]
    deduplicated: int
    refused: int
    results: tuple[BatchResult, ...]


_submission = msgspec.json.Decoder(Submission)
_batch = msgspec.json.Decoder(RawBatch)
_SCHEDULED, _PENDING = NotificationStatus.SCHEDULED, NotificationStatus.PENDING


async def submit_one(api: Api, caller: Caller, header_key: str | None, body: bytes) -> tuple[int, Submitted]:
    """Accept one notification: 202 where it is new, 200 where it was said before."""
    submission = decode(_submission, body)
    if header_key is not None:
        submission = _with_key(submission, header_key)
    (result,) = await api.intake.submit(caller, [submission])
    (answer,) = await _answers(api, caller, [submission], [result])
    if isinstance(answer, WaypostError):
        raise answer
    return (200 if answer.deduplicated else 202), answer


async def submit_batch(api: Api, caller: Caller, header_key: str | None, body: bytes) -> tuple[int, BatchAnswer]:
    """Accept each item or say what is wrong with it: 202 if any is new, 200 if none is."""
    if header_key is not None:
        raise InvalidRequest((Fault("Idempotency-Key", "names one notification; give each item its own key"),))
    items = [_read(raw, n) for n, raw in enumerate(decode(_batch, body).notifications)]
    submissions = [item for item in items if isinstance(item, Submission)]
    accepted = await api.intake.submit(caller, submissions) if submissions else []
    answers = iter(await _answers(api, caller, submissions, accepted))
    merged = [next(answers) if isinstance(item, Submission) else item for item in items]
    results = tuple(_result(answer, n) for n, answer in enumerate(merged))
    new = sum(1 for each in results if each.notification and not each.notification.deduplicated)
    refused = sum(1 for each in results if each.error)
    return (202 if new else 200), BatchAnswer(new, len(results) - new - refused, refused, results)


def _read(raw: Raw, n: int) -> Submission | InvalidRequest:
    try:
        return decode(_submission, raw, f"notifications[{n}]")
    except InvalidRequest as invalid:
        return invalid


def _result(answer: Submitted | WaypostError, n: int) -> BatchResult:
    if isinstance(answer, Submitted):
        return BatchResult(notification=answer)
    if isinstance(answer, InvalidRequest):
        place = f"notifications[{n}]"
        faults = [fault if fault.path.startswith(place) else _inside(fault, place) for fault in answer.faults]
        answer = InvalidRequest(tuple(faults), answer.code)
    return BatchResult(error=problem_of(answer))


def _inside(fault: Fault, place: str) -> Fault:
    return Fault(f"{place}.{fault.path}" if fault.path else place, fault.why)


def _with_key(submission: Submission, header_key: str) -> Submission:
    if submission.idempotency_key not in (None, header_key):
        raise InvalidRequest((Fault("idempotency_key", "differs from the Idempotency-Key header"),))
    return msgspec.structs.replace(submission, idempotency_key=checked(IdempotencyKey, header_key, "Idempotency-Key"))


async def _answers(
    api: Api, caller: Caller, submissions: Sequence[Submission], results: Sequence[Acceptance | InvalidRequest]
) -> list[Submitted | WaypostError]:
    firsts = [result.first_id for result in results if isinstance(result, Duplicate)]
    statuses = await api.views.statuses(caller.app, firsts) if firsts else {}
    now = api.clock.now()
    return [_answer(each, result, statuses, now) for each, result in zip(submissions, results, strict=True)]


def _answer(
    submission: Submission,
    result: Acceptance | InvalidRequest,
    statuses: dict[NotificationId, NotificationStatus],
    now: Instant,
) -> Submitted | WaypostError:
    match result:
        case Accepted(new_id):
            return Submitted(format_id(new_id), _first_status(submission, now), _hash(submission), False)
        case Duplicate(first_id, record_id):
            status = statuses.get(first_id, _PENDING)
            record = None if record_id is None else format_id(record_id)
            return Submitted(format_id(first_id), status, _hash(submission), True, record)
        case Conflicting(first_id):
            return Conflict(f"the idempotency key was used with another body, for {format_id(first_id)}")
        case InProgress(retry_after_ms):
            return InProgressElsewhere(max(1, -(-retry_after_ms // 1000)))
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
    return shown(content_hash(Content(title=submission.title, body=submission.body, data=submission.data)))
