"""Every answer of a push service and what it means for a delivery: its own word first, then the status.

Sources: RFC 8030; developer.apple.com, "Sending web push notifications in web apps and browsers"; autopush's error
codes (Mozilla); learn.microsoft.com, "Push notification service request and response headers" (Windows). Google
documents no words: those here were seen. docs/providers/webpush.md has the same table for operators.
"""

from __future__ import annotations

import re
from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from waypost.channels.push.answers import Meaning, is_success, outcome_of_meaning, outcome_without_answer
from waypost.channels.push.reading import NOTHING, name_of, number_of, read_json, text_of
from waypost.channels.push.retry_after import hint_ms
from waypost.domain.outcome import CredentialRejected, Outcome, Refused, Taken
from waypost.domain.time import Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

_GONE = "the subscription has ended"
_FIX = "the request breaks a rule of the push service"
_VAPID = "the VAPID identity is not accepted: are key, subject and clock right?"
_OTHER_KEY = "the subscription was made with another VAPID key"
_LARGE = "the message is too large for the push service"
_FAILED = "the push service failed"
_OVERLOADED = "the push service is not available"
_MANY = "too many requests"

APPLE: dict[str, tuple[Meaning, str]] = {
    "BadTtl": (Meaning.REFUSED, _FIX),
    "BadUrgency": (Meaning.REFUSED, _FIX),
    "BadWebPushRequest": (Meaning.REFUSED, _FIX),
    "BadWebPushTopic": (Meaning.REFUSED, _FIX),
    "VapidPkHashMismatch": (Meaning.REFUSED, _OTHER_KEY),
    "IdleTimeout": (Meaning.UNSURE, "the connection was idle for too long"),
    "BadAuthorizationHeader": (Meaning.DENIED_SCOPE, _VAPID),
    "BadJwtToken": (Meaning.DENIED_SCOPE, _VAPID),
    "BadVapidPublicKey": (Meaning.DENIED_SCOPE, _VAPID),
    "BadPath": (Meaning.DEAD_TOKEN, "there is no such subscription"),
    "Unregistered": (Meaning.DEAD_TOKEN, _GONE),
    "MethodNotAllowed": (Meaning.REFUSED, _FIX),
    "PayloadTooLarge": (Meaning.REFUSED, _LARGE),
    "TooManyRequests": (Meaning.THROTTLED, _MANY),
    "InternalServerError": (Meaning.UNSURE, _FAILED),
    "ServiceUnavailable": (Meaning.UNSURE, _OVERLOADED),
    "Shutdown": (Meaning.UNSURE, _OVERLOADED),
}
"""The key ``reason`` of the answer's JSON."""

MOZILLA: dict[str, tuple[Meaning, str]] = {
    "errno_101": (Meaning.REFUSED, _FIX),
    "errno_102": (Meaning.DEAD_TOKEN, "there is no such subscription"),
    "errno_103": (Meaning.DEAD_TOKEN, _GONE),
    "errno_104": (Meaning.REFUSED, _LARGE),
    "errno_105": (Meaning.DEAD_TOKEN, _GONE),
    "errno_106": (Meaning.DEAD_TOKEN, _GONE),
    "errno_108": (Meaning.REFUSED, "the endpoint's path is damaged"),
    "errno_109": (Meaning.DENIED_SCOPE, _VAPID),
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
    "errno_999": (Meaning.UNSURE, _FAILED),
}
"""The key ``errno`` of the answer's JSON."""

WINDOWS: dict[str, tuple[Meaning, str]] = {
    "wns_dropped": (Meaning.REFUSED, "Windows took the request and dropped the message"),
    "wns_channelthrottled": (Meaning.THROTTLED, _MANY),
}
"""The header ``x-wns-status``; it counts with a status of 2xx alone, the other statuses say it themselves."""

PHRASES: dict[str, tuple[bytes, Meaning, str]] = {
    "vapid_key_mismatch": (b"mismatch", Meaning.REFUSED, _OTHER_KEY),
    "vapid_key_not_corresponding": (b"do not correspond", Meaning.REFUSED, _OTHER_KEY),
    "unauthorized_registration": (
        b"unauthorizedregistration",
        Meaning.REFUSED,
        "the subscription was made for a sender id of old, not for a VAPID key",
    ),
}
"""The phrases, with a 400, 401 or 403, that speak of one subscription alone: in the body, by Windows in a header."""

STATUSES: dict[int, tuple[Meaning, str]] = {
    400: (Meaning.REFUSED, _FIX),
    401: (Meaning.DENIED_DEVICE, _VAPID),
    403: (Meaning.DENIED_DEVICE, _VAPID),
    404: (Meaning.DEAD_TOKEN, _GONE),
    405: (Meaning.REFUSED, _FIX),
    # Windows throttles with it
    406: (Meaning.THROTTLED, _MANY),
    410: (Meaning.DEAD_TOKEN, _GONE),
    413: (Meaning.REFUSED, _LARGE),
    429: (Meaning.THROTTLED, _MANY),
    500: (Meaning.UNSURE, _FAILED),
    502: (Meaning.UNSURE, _FAILED),
    503: (Meaning.UNSURE, _OVERLOADED),
    504: (Meaning.UNSURE, _FAILED),
    # ntfy: nobody is subscribed at the moment
    507: (Meaning.UNSURE, _OVERLOADED),
}
"""The meaning of an answer without a word of its own; the code is then ``http_<status>``."""

REDIRECTED = (Meaning.REFUSED, "redirects are not followed")
_STATUS_DECIDES = (429,)
"""Statuses that mean the same whatever the body says: Mozilla has one number for 429 and 503."""


# A push service is not trusted: what it says is kept only where it has the form of a word, a number or an address.
_WORD = re.compile(r"[A-Za-z]{1,40}")
_NUMBERS = range(1, 1_000)


class _Body(Struct):
    reason: Raw = NOTHING
    errno: Raw = NOTHING


_decoder = msgspec.json.Decoder(_Body)


def outcome_of(result: Result, now: Instant) -> Outcome:
    """Turn the result of one request into an outcome."""
    match result:
        case Answer() if is_success(result):
            return _taken(result, now)
        case Answer():
            return _refusal(result, now)
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)


def of_one_service(outcome: Outcome) -> Outcome:
    """Soften *outcome* of a push service that is a stranger: whoever brings one must not stop the others by it."""
    return Refused(outcome.code, outcome.why) if isinstance(outcome, CredentialRejected) else outcome


def _taken(answer: Answer, now: Instant) -> Outcome:
    name = other_name = b""
    for header, value in answer.headers:
        if header == b"location":
            name = value
        elif header == b"apns-id":
            other_name = value
        elif header == b"x-wns-status":
            code = "wns_" + value.decode("latin-1").lower()
            if code in WINDOWS:
                meaning, why = WINDOWS[code]
                return outcome_of_meaning(meaning, code, why, hint_ms(answer, meaning, now))
    return Taken(name_of((name or other_name).decode("latin-1")))


def _refusal(answer: Answer, now: Instant) -> Outcome:
    code, meaning, why = _read(answer)
    if meaning is Meaning.THROTTLED and answer.status == 429 and code not in APPLE:
        meaning = Meaning.THROTTLED_WHOLE  # Apple's word, and 406 of Windows, are said of one subscription
    return outcome_of_meaning(meaning, code, why, hint_ms(answer, meaning, now))


def _read(answer: Answer) -> tuple[str, Meaning, str]:
    """Read code, meaning and reason of an answer that is no success."""
    status = answer.status
    if 300 <= status < 400:
        return f"http_{status}", *REDIRECTED
    code = _word(answer)
    # A mismatch is told by some with the number of a bad identity: it is said of one subscription alone.
    if status in (400, 401, 403) and code not in APPLE:
        text = (answer.body + dict(answer.headers).get(b"x-wns-error-description", b"")).lower()
        for name, (phrase, meaning, why) in PHRASES.items():
            if phrase in text:
                return name, meaning, why
    known = None if status in _STATUS_DECIDES else APPLE.get(code) or MOZILLA.get(code)
    unknown = (Meaning.UNSURE, f"an answer that no push service documents, status {status}")
    return code, *(known or STATUSES.get(status, unknown))


def _word(answer: Answer) -> str:
    body = read_json(_decoder, answer.body) or _Body()
    reason, errno = text_of(body.reason), number_of(body.errno)
    if _WORD.fullmatch(reason):
        return reason
    return f"errno_{errno}" if errno in _NUMBERS else f"http_{answer.status}"
