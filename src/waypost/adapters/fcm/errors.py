"""Every answer of FCM and what it means for a delivery: one table.

Sources: firebase.google.com, "ErrorCode" and "FCM error codes". The code is read from the error's details first: its
top-level status says less, and sometimes something else.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Struct

from waypost.adapters.push.answers import Meaning, outcome_of_meaning, outcome_without_answer, read_json
from waypost.adapters.push.retry_after import retry_after_ms
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome, Taken, Throttled
from waypost.domain.time import HOUR_MS, MINUTE_MS, SECOND_MS, Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

UNAUTHENTICATED = "UNAUTHENTICATED"
"""Our access token is not accepted; the sender renews it and tries again, once."""


_CREDENTIAL = "the service account may not send for this project"
_OVERLOADED = "FCM is not available"
_FAILED = "FCM failed"

CODES: dict[str, tuple[Meaning, str]] = {
    # FcmError.errorCode
    "UNREGISTERED": (Meaning.DEAD_TOKEN, "the app is no longer on the device"),
    "INVALID_ARGUMENT": (Meaning.REFUSED, "the message breaks a rule of FCM"),
    "SENDER_ID_MISMATCH": (Meaning.REFUSED, "the token belongs to another project"),
    "THIRD_PARTY_AUTH_ERROR": (Meaning.DENIED, "the project's APNs or web push credentials are not accepted"),
    "QUOTA_EXCEEDED": (Meaning.THROTTLED, "the sending quota is used up"),
    "UNAVAILABLE": (Meaning.UNSURE, _OVERLOADED),
    "INTERNAL": (Meaning.UNSURE, _FAILED),
    "UNSPECIFIED_ERROR": (Meaning.UNSURE, "FCM gives no reason"),
    # The canonical status, where there is no FcmError
    UNAUTHENTICATED: (Meaning.DENIED, "the access token is not accepted"),
    "PERMISSION_DENIED": (Meaning.DENIED, _CREDENTIAL),
    "NOT_FOUND": (Meaning.REFUSED, "there is no such project or path"),
    "RESOURCE_EXHAUSTED": (Meaning.THROTTLED, "the sending quota is used up"),
    # The HTTP status, where the body is not FCM's JSON
    "http_400": (Meaning.REFUSED, "the request is not understood"),
    "http_401": (Meaning.DENIED, "the access token is not accepted"),
    "http_403": (Meaning.DENIED, _CREDENTIAL),
    "http_404": (Meaning.REFUSED, "there is no such project or path"),
    "http_413": (Meaning.REFUSED, "the message is too large"),
    "http_429": (Meaning.THROTTLED, "the sending quota is used up"),
    "http_500": (Meaning.UNSURE, _FAILED),
    "http_502": (Meaning.UNSURE, _OVERLOADED),
    "http_503": (Meaning.UNSURE, _OVERLOADED),
}

WAIT_MS = {"http_502": 30 * SECOND_MS}
"""What to wait where no header says; Google's page for this one suggests it."""
QUOTA_WAIT_MS = MINUTE_MS
"""The least wait after a quota error without Retry-After; doubled with each."""

_FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_TOKEN_FIELD = "message.token"  # noqa: S105 - the name of a field


class _Violation(Struct):
    field: str = ""


class _Detail(Struct):
    type: str = msgspec.field(name="@type", default="")
    error_code: str = msgspec.field(name="errorCode", default="")
    violations: list[_Violation] = msgspec.field(name="fieldViolations", default_factory=list)


class _Error(Struct):
    status: str = ""
    details: list[_Detail] = []


class _Envelope(Struct):
    error: _Error = msgspec.field(default_factory=_Error)


class _Message(Struct):
    name: str = ""


_errors = msgspec.json.Decoder(_Envelope)
_messages = msgspec.json.Decoder(_Message)


def outcome_of(result: Result, delivery: Delivery, now: Instant) -> Outcome:
    """What one request came to."""
    match result:
        case Answer(status=200, body=body):
            return Taken((read_json(_messages, body) or _Message()).name)
        case Answer():
            return _refusal(result, delivery, now)
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)


def asks_for_a_new_access_token(result: Result) -> bool:
    """Whether our access token is what was wrong (a 401 can also speak of the project's APNs credentials)."""
    return (
        isinstance(result, Answer) and result.status == 401 and _code(_error(result), 401) != "THIRD_PARTY_AUTH_ERROR"
    )


def _refusal(answer: Answer, delivery: Delivery, now: Instant) -> Outcome:
    error = _error(answer)
    code = _code(error, answer.status)
    meaning, why = CODES.get(code, (Meaning.UNSURE, f"an answer that FCM does not document, status {answer.status}"))
    if code == "INVALID_ARGUMENT" and _names_the_token(error):
        meaning = Meaning.DEAD_TOKEN
    wait_ms = retry_after_ms(answer, now)
    if wait_ms is None:
        wait_ms = _quota_wait_ms(delivery) if meaning is Meaning.THROTTLED else WAIT_MS.get(code)
    if meaning is Meaning.THROTTLED:
        return Throttled(code, wait_ms, whole=True)
    return outcome_of_meaning(meaning, code, why, wait_ms)


def _quota_wait_ms(delivery: Delivery) -> int:
    return min(QUOTA_WAIT_MS << min(delivery.throttles, 10), HOUR_MS)


def _error(answer: Answer) -> _Error | None:
    error = (read_json(_errors, answer.body) or _Envelope()).error
    return error if error.status or error.details else None


def _code(error: _Error | None, status: int) -> str:
    if error is None:
        return f"http_{status}"
    named = next((detail.error_code for detail in error.details if detail.type == _FCM_ERROR), "")
    return named or error.status or f"http_{status}"


def _names_the_token(error: _Error | None) -> bool:
    details = error.details if error is not None else []
    return any(
        violation.field == _TOKEN_FIELD
        for detail in details
        if detail.type == _BAD_REQUEST
        for violation in detail.violations
    )
