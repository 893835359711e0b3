"""Every answer of a push service and what it means for a delivery: reasons first, then the status.

Sources: RFC 8030; developer.apple.com, "Sending web push notifications"; autopush's error table (Mozilla's service).
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Struct

from waypost.adapters.push.answers import Meaning, outcome_of_meaning, outcome_without_answer, read_json
from waypost.adapters.push.retry_after import retry_after_ms
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.time import Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

_GONE = "the subscription has ended"
_FIX = "the request breaks a rule of the push service"
_VAPID = "the VAPID identity is not accepted: are key, subject and clock right?"
_OTHER_KEY = "the subscription was made with another VAPID key"
_LARGE = "the message is too large for the push service"
_FAILED = "the push service failed"
_OVERLOADED = "the push service is not available"

REASONS: dict[str, tuple[Meaning, str]] = {
    # Apple's "reason"
    "BadTtl": (Meaning.REFUSED, _FIX),
    "BadUrgency": (Meaning.REFUSED, _FIX),
    "BadWebPushRequest": (Meaning.REFUSED, _FIX),
    "BadWebPushTopic": (Meaning.REFUSED, _FIX),
    "VapidPkHashMismatch": (Meaning.REFUSED, _OTHER_KEY),
    "IdleTimeout": (Meaning.UNSURE, "the connection was idle for too long"),
    "BadAuthorizationHeader": (Meaning.DENIED, _VAPID),
    "BadJwtToken": (Meaning.DENIED, _VAPID),
    "BadVapidPublicKey": (Meaning.DENIED, _VAPID),
    "BadPath": (Meaning.DEAD_TOKEN, "there is no such subscription"),
    "MethodNotAllowed": (Meaning.REFUSED, _FIX),
    "PayloadTooLarge": (Meaning.REFUSED, _LARGE),
    "TooManyRequests": (Meaning.THROTTLED, "too many requests"),
    "InternalServerError": (Meaning.UNSURE, _FAILED),
    "ServiceUnavailable": (Meaning.UNSURE, _OVERLOADED),
    "Shutdown": (Meaning.UNSURE, _OVERLOADED),
    # Mozilla's "errno"
    "errno_101": (Meaning.REFUSED, _FIX),
    "errno_102": (Meaning.DEAD_TOKEN, _GONE),
    "errno_103": (Meaning.DEAD_TOKEN, _GONE),
    "errno_104": (Meaning.REFUSED, _LARGE),
    "errno_105": (Meaning.DEAD_TOKEN, _GONE),
    "errno_106": (Meaning.DEAD_TOKEN, _GONE),
    "errno_108": (Meaning.REFUSED, _FIX),
    "errno_109": (Meaning.DENIED, _VAPID),
    "errno_110": (Meaning.REFUSED, _FIX),
    "errno_111": (Meaning.REFUSED, _FIX),
    "errno_112": (Meaning.REFUSED, _FIX),
    "errno_113": (Meaning.REFUSED, _FIX),
    "errno_114": (Meaning.REFUSED, _FIX),
    "errno_201": (Meaning.UNSURE, _OVERLOADED),
    "errno_202": (Meaning.UNSURE, _OVERLOADED),
    "errno_900": (Meaning.UNSURE, _FAILED),
    "errno_901": (Meaning.UNSURE, _FAILED),
    "errno_902": (Meaning.UNSURE, _FAILED),
    "errno_903": (Meaning.UNSURE, _FAILED),
}

STATUSES: dict[int, tuple[Meaning, str]] = {
    400: (Meaning.REFUSED, _FIX),
    401: (Meaning.DENIED, _VAPID),
    403: (Meaning.DENIED, _VAPID),
    404: (Meaning.DEAD_TOKEN, _GONE),
    405: (Meaning.REFUSED, _FIX),
    # Windows throttles with it
    406: (Meaning.THROTTLED, "too many requests"),
    410: (Meaning.DEAD_TOKEN, _GONE),
    413: (Meaning.REFUSED, _LARGE),
    429: (Meaning.THROTTLED, "too many requests"),
    500: (Meaning.UNSURE, _FAILED),
    502: (Meaning.UNSURE, _FAILED),
    503: (Meaning.UNSURE, _OVERLOADED),
    504: (Meaning.UNSURE, _FAILED),
    # ntfy: nobody is subscribed at the moment
    507: (Meaning.UNSURE, _OVERLOADED),
}

_OTHER_KEY_PHRASES = (b"mismatch", b"do not correspond")
"""How services without a word of their own say, with 400, 401 or 403, that the subscription knows another key."""


class _Body(Struct):
    reason: str = ""
    errno: int = 0


_decoder = msgspec.json.Decoder(_Body)


def outcome_of(result: Result, now: Instant) -> Outcome:
    """What one request came to."""
    match result:
        case Answer(status=200 | 201 | 202):
            return Taken(_message_name(result))
        case Answer():
            return _refusal(result, now)
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)


def _refusal(answer: Answer, now: Instant) -> Outcome:
    code = _code(answer)
    meaning, why = _meaning(answer, code)
    return outcome_of_meaning(meaning, code, why, retry_after_ms(answer, now))


def _meaning(answer: Answer, code: str) -> tuple[Meaning, str]:
    status = answer.status
    if 300 <= status < 400:
        return Meaning.REFUSED, "redirects are not followed"
    if status in (400, 401, 403) and any(phrase in answer.body.lower() for phrase in _OTHER_KEY_PHRASES):
        return Meaning.REFUSED, _OTHER_KEY
    unknown = (Meaning.UNSURE, f"an answer that no push service documents, status {status}")
    return REASONS.get(code) or STATUSES.get(status, unknown)


def _code(answer: Answer) -> str:
    body = read_json(_decoder, answer.body) or _Body()
    if body.reason:
        return body.reason
    return f"errno_{body.errno}" if body.errno else f"http_{answer.status}"


def _message_name(answer: Answer) -> str:
    """The message's own address, or Apple's id for it."""
    headers = dict(answer.headers)
    return headers.get(b"location", headers.get(b"apns-id", b"")).decode("latin-1")
