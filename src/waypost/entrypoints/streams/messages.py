"""The submission in a message of a stream.

payload={…}                            a submission, as POST /v1/notifications takes it
payload={"userId": …, …}               a job of the notifications service, as JSON
userId=… title=… body=… data=… …       the same, as fields
idempotency_key=…                      beside any of these: the producer's own key
traceparent=…                          beside any of these: where in a trace it comes from
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, structs

from waypost.domain.content import Urgency
from waypost.domain.dedup import placed_key
from waypost.domain.errors import ErrorCode, Fault, InvalidRequest
from waypost.domain.job import is_payload, read_job
from waypost.domain.submission import Submission
from waypost.entrypoints.decoding import decode
from waypost.entrypoints.submitting import with_key
from waypost.entrypoints.wording import fault_of
from waypost.ports.source import OWN_KEY, PAYLOAD, TRACE, Foreign
from waypost.telemetry.tracing import Trace

MESSAGE_LIMIT_BYTES = 512 * 1024
"""The largest message, as of a request body: 64 KiB as stored, JSON escapes may take more."""
_USER = b'"userId"'
_BESIDE = frozenset({OWN_KEY, TRACE})
"""Fields that stand beside whatever form the rest has."""

_submission = msgspec.json.Decoder(Submission)


class _Marked(Struct):
    """The key that tells a job of the notifications service from a submission."""

    userId: Any = None  # noqa: N815 - the key as its producers write it


_marked = msgspec.json.Decoder(_Marked)


def read_message(message: Foreign, stream: str) -> Submission:
    """Read the submission in *message*, with a key that keeps it from being accepted twice; InvalidRequest if wrong.

    A derived key has a sign that a producer's own cannot have: neither can be taken for the other.
    """
    fields = message.fields
    payload = fields.get(PAYLOAD)
    own_key = None
    if payload is not None and len(fields) == 1 and _USER not in payload and len(payload) <= MESSAGE_LIMIT_BYTES:
        submission = decode(_submission, payload)  # as most are, and as they would be read below
    else:
        own_key = fields.get(OWN_KEY)
        submission = _read_any(fields)
    if own_key is not None:
        return with_key(submission, own_key.decode(errors="replace"), "idempotency_key")
    if submission.idempotency_key is None:
        # It was made here, and nobody else has seen it: a copy would cost as much as the decoding.
        structs.force_setattr(submission, "idempotency_key", placed_key(stream, message.place))
    return submission


def _read_any(fields: Mapping[bytes, bytes]) -> Submission:
    if sum(map(len, fields.values())) > MESSAGE_LIMIT_BYTES:
        raise InvalidRequest((Fault("", f"more than {MESSAGE_LIMIT_BYTES} bytes"),), ErrorCode.TOO_LARGE)
    if not _BESIDE.isdisjoint(fields):
        fields = {name: value for name, value in fields.items() if name not in _BESIDE}
    if is_payload(fields) and not _is_job(fields[PAYLOAD]):
        return decode(_submission, fields[PAYLOAD])
    return _of_job(fields)


def place_of(message: Foreign) -> Trace | None:
    """Return the place in a trace that its producer wrote *message* in; None where it says none."""
    said = message.fields.get(TRACE)
    return None if said is None else said.decode("latin-1")


def _is_job(payload: bytes) -> bool:
    """Tell whether *payload* is a job; one that cannot be read is not, and is refused as a submission is."""
    if _USER not in payload:
        return False
    try:
        return _marked.decode(payload).userId is not None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _of_job(fields: Mapping[bytes, bytes]) -> Submission:
    job = read_job(fields)
    asked = {
        "user_id": job.user_id,
        "title": job.title,
        "body": job.body,
        "badge": job.badge,
        "data": job.data if job.channel is None else {**job.data, "channel": job.channel},
        "android_channel": job.channel,
        "urgency": Urgency.HIGH,
    }
    try:
        return msgspec.convert(asked, Submission)
    except msgspec.ValidationError as error:
        raise InvalidRequest((fault_of(error, Submission),)) from None
