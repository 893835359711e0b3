"""Every answer of FCM and what it means for a delivery: one table.

Sources: firebase.google.com, "ErrorCode" and "FCM error codes". The code is read from the error's details first: its
top-level status says less, and sometimes something else.
"""

from __future__ import annotations

import re
from typing import assert_never
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from waypost.channels.fcm.settings import TokenRules
from waypost.channels.push.answers import Meaning, is_success, outcome_of_meaning, outcome_without_answer
from waypost.channels.push.reading import NOTHING, items_of, name_of, read_json, text_of, word_of
from waypost.channels.push.retry_after import hint_ms, longer_ms
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome, Refused, Taken, Throttled, Unanswered
from waypost.domain.time import HOUR_MS, MINUTE_MS, SECOND_MS, Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

DEFAULT_RULES = TokenRules()

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
    # It speaks of iOS devices and browsers behind FCM: Android must not stop for them.
    "THIRD_PARTY_AUTH_ERROR": (Meaning.REFUSED, "the project's APNs or web push credentials are not accepted"),
    "QUOTA_EXCEEDED": (Meaning.THROTTLED_WHOLE, "the sending quota is used up"),
    "UNAVAILABLE": (Meaning.UNSURE, _OVERLOADED),
    "INTERNAL": (Meaning.UNSURE, _FAILED),
    "UNSPECIFIED_ERROR": (Meaning.UNSURE, "FCM gives no reason"),
    # The canonical status, where there is no FcmError
    UNAUTHENTICATED: (Meaning.DENIED, "the access token is not accepted"),
    "PERMISSION_DENIED": (Meaning.DENIED, _CREDENTIAL),
    "NOT_FOUND": (Meaning.REFUSED, "there is no such project or path"),
    "RESOURCE_EXHAUSTED": (Meaning.THROTTLED_WHOLE, "the sending quota is used up"),
    # The HTTP status, where the body is not FCM's JSON
    "http_400": (Meaning.REFUSED, "the request is not understood"),
    "http_401": (Meaning.DENIED, "the access token is not accepted"),
    "http_403": (Meaning.DENIED, _CREDENTIAL),
    "http_404": (Meaning.REFUSED, "there is no such project or path"),
    "http_413": (Meaning.REFUSED, "the message is too large"),
    "http_429": (Meaning.THROTTLED_WHOLE, "the sending quota is used up"),
    "http_500": (Meaning.UNSURE, _FAILED),
    "http_502": (Meaning.UNSURE, _OVERLOADED),
    "http_503": (Meaning.UNSURE, _OVERLOADED),
    "http_504": (Meaning.UNSURE, _OVERLOADED),
}

FIRST_WAIT_MS = 10 * SECOND_MS
"""The least wait before the first retry ("Scale FCM": 10 s); doubled with each, up to an hour."""
FIRST_WAITS_MS = {"http_502": 30 * SECOND_MS}
"""The codes with another first wait: the page that comes with this one suggests it."""
_SPREAD = 0.3
"""Waits are longer by up to this part, each delivery's by its own, so that what failed together comes back apart."""
QUOTA_WAIT_MS = MINUTE_MS
"""Milliseconds to wait after a quota error without Retry-After (Google's page on quotas); doubled with each."""

_FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
_SAYS_THE_TOKEN = "not a valid FCM registration token"  # noqa: S105 - a text
"""FCM's sentence for a token that cannot be one; no field is named with it."""
_TOKEN_FIELDS = ("message.token", "message.fid")


# A field path as Google writes it; nothing else that an answer quotes of a message is kept.
_FIELD = re.compile(r"[A-Za-z_]\w{0,63}(\[\d{1,4}\])?(\.[A-Za-z_]\w{0,63}(\[\d{1,4}\])?){0,7}", re.ASCII)
_FIELDS_NAMED = 3


class _Violation(Struct):
    field: Raw = NOTHING


class _Detail(Struct):
    type: Raw = msgspec.field(name="@type", default=NOTHING)
    error_code: Raw = msgspec.field(name="errorCode", default=NOTHING)
    violations: Raw = msgspec.field(name="fieldViolations", default=NOTHING)


class _Error(Struct):
    status: Raw = NOTHING
    message: Raw = NOTHING
    details: Raw = NOTHING


class _Envelope(Struct):
    error: Raw = NOTHING


class _Message(Struct):
    name: str = ""


class _Said(Struct, frozen=True):
    """The content of an error, as far as it can be read."""

    code: str
    message: str = ""
    fields: tuple[str, ...] = ()
    """The fields of the message that break a rule."""


_errors = msgspec.json.Decoder(_Error)
_envelopes = msgspec.json.Decoder(_Envelope)
_details = msgspec.json.Decoder(_Detail)
_violations = msgspec.json.Decoder(_Violation)
_messages = msgspec.json.Decoder(_Message)


def outcome_of(result: Result, tried: Delivery, now: Instant, rules: TokenRules = DEFAULT_RULES) -> Outcome:
    """Turn the result of one request into an outcome."""
    match result:
        case Answer() if is_success(result):
            return taken_of(result)
        case Answer():
            return _refusal(result, tried, now, rules)
        case Unsent():
            return outcome_without_answer(result)
        case Unknown(reason, kind):
            return Unanswered(kind.value, reason, _backoff_ms(kind.value, tried))
        case _:
            assert_never(result)


def taken_of(answer: Answer) -> Taken:
    """Read FCM's name for a message that it took; "" where the answer, of whatever form, gives none."""
    message = read_json(_messages, answer.body)
    return Taken("" if message is None else name_of(message.name))


def asks_for_a_new_access_token(result: Result) -> bool:
    """Tell whether our access token is what was wrong (a 401 can also speak of the project's APNs credentials)."""
    return isinstance(result, Answer) and result.status == 401 and code_of(result) != "THIRD_PARTY_AUTH_ERROR"


def code_of(answer: Answer) -> str:
    """Read FCM's own code, else its canonical status, else ``http_<status>``."""
    return _said(answer).code


def _refusal(answer: Answer, tried: Delivery, now: Instant, rules: TokenRules) -> Outcome:
    said = _said(answer)
    code = said.code
    meaning, why = CODES.get(code, (Meaning.UNSURE, f"an answer that FCM does not document, status {answer.status}"))
    if _forgets_the_token(said, rules):
        meaning = Meaning.DEAD_TOKEN
    wait_ms = hint_ms(answer, meaning, now)
    if meaning is Meaning.THROTTLED_WHOLE:
        return Throttled(code, _quota_wait_ms(tried) if wait_ms is None else wait_ms, whole=True)
    if meaning is Meaning.REFUSED and said.fields:
        return Refused(code, f"{why}: {', '.join(said.fields)}")
    return outcome_of_meaning(meaning, code, why, longer_ms(wait_ms, _backoff_ms(code, tried)))


def _forgets_the_token(said: _Said, rules: TokenRules) -> bool:
    """Tell whether the app's settings make one of the two ambiguous codes forget the token."""
    if said.code == "SENDER_ID_MISMATCH":
        return rules.sender_id_mismatch == "remove"
    if said.code != "INVALID_ARGUMENT":
        return False
    match rules.invalid_argument:
        case "remove":
            return True
        case "refuse":
            return False
        case "smart":
            if said.fields:
                return any(field in _TOKEN_FIELDS for field in said.fields)
            return _SAYS_THE_TOKEN in said.message
        case _:
            assert_never(rules.invalid_argument)


def _backoff_ms(code: str, tried: Delivery) -> int:
    first_ms = FIRST_WAITS_MS.get(code, FIRST_WAIT_MS)
    wait_ms = min(first_ms << min(tried.retries_made, 16), HOUR_MS)
    chance = crc32(tried.id + tried.n.to_bytes(4)) / 2**32
    return wait_ms + int(wait_ms * _SPREAD * chance)


def _quota_wait_ms(tried: Delivery) -> int:
    return min(QUOTA_WAIT_MS << min(tried.throttles, 10), HOUR_MS)


def _said(answer: Answer) -> _Said:
    """Read each field by itself: Google's front ends and proxies write errors in other forms than FCM."""
    envelope = next((read_json(_envelopes, each) for each in items_of(Raw(answer.body))), None) or _Envelope()
    error = read_json(_errors, envelope.error) or _Error()
    details = [detail for each in items_of(error.details) if (detail := read_json(_details, each)) is not None]
    named = (word_of(detail.error_code) for detail in details if text_of(detail.type) == _FCM_ERROR)
    code = next(filter(None, named), "") or word_of(error.status) or f"http_{answer.status}"
    return _Said(code, text_of(error.message), _fields_of(details))


def _fields_of(details: list[_Detail]) -> tuple[str, ...]:
    """List the fields that break a rule; their descriptions may quote the message and are left out."""
    violations = [
        read_json(_violations, each)
        for detail in details
        if text_of(detail.type) == _BAD_REQUEST
        for each in items_of(detail.violations)
    ]
    fields = [text_of(violation.field) for violation in violations if violation is not None]
    return tuple(field for field in fields if _FIELD.fullmatch(field))[:_FIELDS_NAMED]
