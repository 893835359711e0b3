"""Errors as gRPC has them: a status code, and google.rpc.Status with what a program needs to know."""

from __future__ import annotations

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2 as details
from google.rpc import status_pb2

from waypost.domain.errors import ErrorCode, InvalidRequest, WaypostError
from waypost.entrypoints.submitting import retry_after_s

DOMAIN = "waypost"
"""The domain of ErrorInfo: its reasons are Waypost's words."""
DETAILS_KEY = "grpc-status-details-bin"

_E, _S = ErrorCode, grpc.StatusCode

STATUS_OF: dict[ErrorCode, grpc.StatusCode] = {
    _E.INVALID_REQUEST: _S.INVALID_ARGUMENT,
    _E.INVALID_JSON: _S.INVALID_ARGUMENT,
    _E.INVALID_CURSOR: _S.INVALID_ARGUMENT,
    _E.UNAUTHENTICATED: _S.UNAUTHENTICATED,
    _E.FORBIDDEN: _S.PERMISSION_DENIED,
    _E.NOT_FOUND: _S.NOT_FOUND,
    _E.METHOD_NOT_ALLOWED: _S.UNIMPLEMENTED,
    _E.REQUEST_TIMEOUT: _S.DEADLINE_EXCEEDED,
    _E.IDEMPOTENCY_CONFLICT: _S.ALREADY_EXISTS,
    _E.IN_PROGRESS: _S.ABORTED,
    _E.NOT_REPLAYABLE: _S.FAILED_PRECONDITION,
    _E.ALREADY_FINAL: _S.FAILED_PRECONDITION,
    _E.WRONG_STATE: _S.FAILED_PRECONDITION,
    _E.WRONG_CODE: _S.FAILED_PRECONDITION,
    _E.UNKNOWN_TEMPLATE: _S.INVALID_ARGUMENT,
    _E.MISSING_VARIABLE: _S.INVALID_ARGUMENT,
    _E.TOO_LARGE: _S.INVALID_ARGUMENT,
    _E.UNSUPPORTED_MEDIA_TYPE: _S.INVALID_ARGUMENT,
    _E.HEADERS_TOO_LARGE: _S.RESOURCE_EXHAUSTED,
    _E.BACKLOG_FULL: _S.UNAVAILABLE,
    _E.RATE_LIMITED: _S.RESOURCE_EXHAUSTED,
    _E.STORAGE_BUSY: _S.UNAVAILABLE,
    _E.STORAGE_FULL: _S.UNAVAILABLE,
    _E.STORAGE_AWAY: _S.UNAVAILABLE,
    _E.STORAGE_BROKEN: _S.UNAVAILABLE,
    _E.ARCHIVE_AWAY: _S.UNAVAILABLE,
    _E.ISSUER_AWAY: _S.UNAVAILABLE,
    _E.SHUTTING_DOWN: _S.UNAVAILABLE,
    _E.INTERNAL: _S.INTERNAL,
}
"""The gRPC status of each code: what may succeed later is UNAVAILABLE, which clients retry by themselves."""

_TEXT_LIMIT = 200
_MESSAGE_LIMIT = 4 * _TEXT_LIMIT


def foreseen(error: BaseException) -> WaypostError | None:
    """Return *error* where it is an answer; None where it is a surprise."""
    return error if isinstance(error, WaypostError) and error.code is not ErrorCode.INTERNAL else None


def status_of(error: BaseException) -> status_pb2.Status:
    """Build the status that tells a caller about *error*; a surprise is ``internal`` and says nothing more."""
    known = foreseen(error)
    code = known.code if known else ErrorCode.INTERNAL
    text = str(known) if known else "an unexpected error; the log of the server has it"
    info: list[Message] = [details.ErrorInfo(reason=code.value, domain=DOMAIN)]
    if isinstance(known, InvalidRequest):
        violations = [
            details.BadRequest.FieldViolation(field=fault.path[:_TEXT_LIMIT], description=fault.why[:_TEXT_LIMIT])
            for fault in known.faults
        ]
        info.append(details.BadRequest(field_violations=violations))
    wait_s = retry_after_s(error)
    if wait_s is not None:
        info.append(details.RetryInfo(retry_delay=duration_pb2.Duration(seconds=wait_s)))
    return status_pb2.Status(
        code=STATUS_OF[code].value[0], message=text[:_MESSAGE_LIMIT], details=[_packed(each) for each in info]
    )


def _packed(detail: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
