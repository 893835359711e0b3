"""Problem answers (RFC 9457): every error as one body with a stable code."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from waypost.domain.errors import ErrorCode, Fault, Forbidden, InvalidRequest, WaypostError
from waypost.entrypoints.limits import RateLimited
from waypost.entrypoints.submitting import retry_after_s

PROBLEM_TYPE = "application/problem+json"

_E = ErrorCode

STATUS_OF: dict[ErrorCode, int] = {
    _E.INVALID_REQUEST: 400,
    _E.INVALID_JSON: 400,
    _E.INVALID_CURSOR: 400,
    _E.UNAUTHENTICATED: 401,
    _E.FORBIDDEN: 403,
    _E.NOT_FOUND: 404,
    _E.METHOD_NOT_ALLOWED: 405,
    _E.REQUEST_TIMEOUT: 408,
    _E.IDEMPOTENCY_CONFLICT: 409,
    _E.IN_PROGRESS: 409,
    _E.NOT_REPLAYABLE: 409,
    _E.ALREADY_FINAL: 409,
    _E.WRONG_STATE: 409,
    _E.WRONG_CODE: 409,
    _E.UNKNOWN_TEMPLATE: 400,
    _E.MISSING_VARIABLE: 400,
    _E.TOO_LARGE: 413,
    _E.UNSUPPORTED_MEDIA_TYPE: 415,
    _E.HEADERS_TOO_LARGE: 431,
    _E.BACKLOG_FULL: 429,
    _E.RATE_LIMITED: 429,
    _E.STORAGE_BUSY: 503,
    _E.STORAGE_FULL: 503,
    _E.STORAGE_AWAY: 503,
    _E.STORAGE_BROKEN: 503,
    _E.ARCHIVE_AWAY: 503,
    _E.ISSUER_AWAY: 503,
    _E.SHUTTING_DOWN: 503,
    _E.INTERNAL: 500,
}
"""The HTTP status of each code."""

_PATH_LIMIT = 200


class Problem(Struct, frozen=True, omit_defaults=True):
    """The reason for a refusal; *code* is for programs, *detail* for people."""

    type: Annotated[
        str, Meta(description="A URI that identifies the kind of problem.", examples=["urn:waypost:problem:not_found"])
    ]
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    code: ErrorCode
    detail: str
    faults: tuple[Fault, ...] = ()
    retry_after: Annotated[
        int | None, Meta(description="Seconds to wait before a retry; also in the Retry-After header.")
    ] = None


class RequestRefused(WaypostError):
    """The error that the HTTP exchange itself is wrong; *headers* go with the answer, *closes* ends the connection."""

    def __init__(
        self, code: ErrorCode, why: str, headers: tuple[tuple[str, str], ...] = (), *, closes: bool = False
    ) -> None:
        super().__init__(why, code)
        self.headers = headers
        self.closes = closes


def problem_of(error: BaseException) -> Problem:
    """Build the problem that tells a caller about *error*; a surprise is ``internal`` and says nothing more."""
    if not isinstance(error, WaypostError):
        return _problem(ErrorCode.INTERNAL, "an unexpected error; the log of the server has it")
    faults = error.faults if isinstance(error, InvalidRequest) else ()
    return _problem(error.code, str(error), faults, retry_after_s(error))


def _problem(code: ErrorCode, detail: str, faults: tuple[Fault, ...] = (), retry_after: int | None = None) -> Problem:
    status = STATUS_OF[code]
    shown = tuple(Fault(fault.path[:_PATH_LIMIT], fault.why[:_PATH_LIMIT]) for fault in faults)
    title = HTTPStatus(status).phrase
    return Problem(f"urn:waypost:problem:{code}", title, status, code, detail[: 4 * _PATH_LIMIT], shown, retry_after)


def headers_of(error: BaseException, problem: Problem) -> list[tuple[str, str]]:
    """List the headers an error answer carries besides its type and length."""
    headers = list(error.headers) if isinstance(error, RequestRefused) else []
    if problem.retry_after is not None:
        headers.append(("retry-after", str(problem.retry_after)))
    if isinstance(error, RateLimited):
        headers.append(("ratelimit-policy", f'"{error.policy}";q={error.quota};w={error.window_s}'))
        headers.append(("ratelimit", f'"{error.policy}";r={error.left};t={error.retry_after_s}'))
    if problem.status == 401:
        headers.append(("www-authenticate", 'Bearer realm="waypost"'))
    if isinstance(error, Forbidden):  # RFC 6750, section 3.1
        missing = f'Bearer realm="waypost", error="insufficient_scope", scope="{error.scope}"'
        headers.append(("www-authenticate", missing))
    if isinstance(error, RequestRefused) and error.closes:
        headers.append(("connection", "close"))
    return headers


encode_problem = msgspec.json.Encoder().encode
