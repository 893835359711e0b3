"""The hot path of submissions: bytes in, one answer each out; no framework below this line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from waypost.domain.errors import Fault, InvalidRequest, WaypostError
from waypost.domain.submission import Submission
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.bodies import Batch, RawBatch
from waypost.entrypoints.rest.problems import Problem, problem_of
from waypost.entrypoints.submitting import Submitted, placed, submit, submit_gathered, with_key
from waypost.pipeline.intake import Caller


class BatchResult(Struct, frozen=True, omit_defaults=True):
    """The result of one item: either *notification*, or the *error* that refused this item alone."""

    notification: Submitted | None = None
    error: Problem | None = None


class BatchAnswer(Struct, frozen=True):
    """The results of a batch, one per item, in order."""

    accepted: Annotated[int, Meta(description="Items newly accepted.")]
    deduplicated: int
    refused: int
    results: tuple[BatchResult, ...]


_submission = msgspec.json.Decoder(Submission)
_whole_batch = msgspec.json.Decoder(Batch)
_batch = msgspec.json.Decoder(RawBatch)


async def submit_one(api: Api, caller: Caller, header_key: str | None, body: bytes) -> tuple[int, Submitted]:
    """Accept one notification: 202 where it is new, 200 where it is a repeat."""
    answer = await accept(api, caller, header_key, decode(_submission, body))
    return (200 if answer.deduplicated else 202), answer


async def accept(api: Api, caller: Caller, header_key: str | None, submission: Submission) -> Submitted:
    """Accept *submission* under the key of the header, if there is one; whatever refuses it is raised."""
    if header_key is not None:
        submission = with_key(submission, header_key, "Idempotency-Key")
    answer = await submit_gathered(api.intake, api.gathering, api.views, caller, submission)
    if isinstance(answer, WaypostError):
        raise answer
    return answer


async def submit_batch(api: Api, caller: Caller, header_key: str | None, body: bytes) -> tuple[int, BatchAnswer]:
    """Accept each item or say what is wrong with it: 202 if any is new, 200 if none is."""
    if header_key is not None:
        raise InvalidRequest((Fault("Idempotency-Key", "names one notification; give each item its own key"),))
    items = _items(body)
    await api.limits.count(caller, len(items) - 1)
    submissions = [item for item in items if isinstance(item, Submission)]
    answers = iter(await submit(api.intake, api.views, caller, submissions))
    merged = [next(answers) if isinstance(item, Submission) else item for item in items]
    results = tuple(
        [
            BatchResult(answer) if isinstance(answer, Submitted) else _refused(answer, n)
            for n, answer in enumerate(merged)
        ]
    )
    new = sum([1 for each in results if each.notification and not each.notification.deduplicated])
    refused = sum([1 for each in results if each.error])
    return (202 if new else 200), BatchAnswer(new, len(results) - new - refused, refused, results)


def _items(body: bytes) -> Sequence[Submission | InvalidRequest]:
    """Read the items of a batch: all at once, and each by itself where one of them is wrong."""
    try:
        return _whole_batch.decode(body).notifications
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw_items = decode(_batch, body).notifications
    return [_read(raw, n) for n, raw in enumerate(raw_items)]


def _read(raw: Raw, n: int) -> Submission | InvalidRequest:
    try:
        return decode(_submission, raw, f"notifications[{n}]")
    except InvalidRequest as invalid:
        return invalid


def _refused(answer: WaypostError, n: int) -> BatchResult:
    if isinstance(answer, InvalidRequest):
        answer = placed(answer, f"notifications[{n}]")
    return BatchResult(error=problem_of(answer))
