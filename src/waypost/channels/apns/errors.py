"""Every answer of APNs and what it means for a delivery: one table.

Source: developer.apple.com, "Handling notification responses from APNs"; what the wire says differently is noted.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from waypost.channels.push.answers import Meaning, is_success, outcome_of_meaning, outcome_without_answer
from waypost.channels.push.reading import NOTHING, name_of, number_of, read_json, word_of
from waypost.channels.push.retry_after import hint_ms, longer_ms
from waypost.domain.audience import Audience
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.time import SECOND_MS, Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

EXPIRED_JWT = "ExpiredProviderToken"
"""The sender answers it itself first: with a new token, once."""
TOKEN_TOO_NEW = "TooManyProviderTokenUpdates"  # noqa: S105 - a reason
"""The connection takes no new provider token yet; the sender tries another connection first, once."""
UNKNOWN_DEVICE = "BadDeviceToken"
"""The sender answers it itself first: at the other environment, once."""
CONNECTION_OVER = ("IdleTimeout", "UnrelatedKeyIdInToken", TOKEN_TOO_NEW, "Shutdown")
"""Said of the connection (the second: it takes no other key; the third: no new token yet). It is given up, and a retry
goes over a new one."""
WRONG_TOPIC = "DeviceTokenNotForTopic"

_IDS = (b"apns-id", b"apns-request-id")
_MINUTE_MS = 60 * SECOND_MS
_FIX = "the request breaks a rule of APNs"
_KEY = "the signing key, key id or team id is not accepted"

REASONS: dict[str, tuple[Meaning, str]] = {
    "BadCollapseId": (Meaning.REFUSED, _FIX),
    UNKNOWN_DEVICE: (Meaning.DEAD_TOKEN, "the token is malformed or of the other environment"),
    "BadExpirationDate": (Meaning.REFUSED, _FIX),
    "BadMessageId": (Meaning.REFUSED, _FIX),
    "BadPriority": (Meaning.REFUSED, _FIX),
    "BadTopic": (Meaning.DENIED_SCOPE, "the topic is malformed"),
    WRONG_TOPIC: (Meaning.DEAD_TOKEN, "the token belongs to another app"),
    "DuplicateHeaders": (Meaning.REFUSED, _FIX),
    "IdleTimeout": (Meaning.NOT_TAKEN, "the connection was idle for too long"),
    "InvalidPushType": (Meaning.REFUSED, _FIX),
    "MissingDeviceToken": (Meaning.REFUSED, "the token is empty"),
    "MissingTopic": (Meaning.DENIED_SCOPE, "no topic was given"),
    "PayloadEmpty": (Meaning.REFUSED, _FIX),
    "TopicDisallowed": (Meaning.DENIED_SCOPE, "the key may not push to this topic"),
    "BadCertificate": (Meaning.DENIED, "the client certificate is not accepted"),
    "BadCertificateEnvironment": (Meaning.DENIED, "the client certificate is for the other environment"),
    EXPIRED_JWT: (Meaning.DENIED, "a fresh provider token is too old for Apple: is the clock right?"),
    "Forbidden": (Meaning.DENIED, "the key may not do this; was it revoked?"),
    "InvalidProviderToken": (Meaning.DENIED, _KEY),
    "MissingProviderToken": (Meaning.DENIED, _KEY),
    "UnrelatedKeyIdInToken": (Meaning.NOT_TAKEN, "the connection is bound to another key"),
    "BadEnvironmentKeyIdInToken": (Meaning.DENIED, "the key is for the other environment"),
    # The spelling seen on the wire.
    "BadEnvironmentKeyInToken": (Meaning.DENIED, "the key is for the other environment"),
    "BadPath": (Meaning.REFUSED, _FIX),
    "MethodNotAllowed": (Meaning.REFUSED, _FIX),
    "ExpiredToken": (Meaning.DEAD_TOKEN, "the token has expired"),
    "Unregistered": (Meaning.DEAD_TOKEN, "the app is no longer on the device"),
    "PayloadTooLarge": (Meaning.REFUSED, "the payload is over Apple's limit"),
    TOKEN_TOO_NEW: (Meaning.THROTTLED_WHOLE, "the provider token was renewed too often"),
    "TooManyRequests": (Meaning.THROTTLED, "too many requests to one token"),
    "InternalServerError": (Meaning.UNSURE, "Apple failed"),
    "ServiceUnavailable": (Meaning.NOT_TAKEN, "Apple is not available"),
    "Shutdown": (Meaning.NOT_TAKEN, "Apple's server is shutting down"),
}

STATUSES: dict[str, tuple[Meaning, str]] = {
    "http_400": (Meaning.REFUSED, "the request is not understood"),
    "http_403": (Meaning.DENIED_DEVICE, "the credential is not accepted"),
    "http_404": (Meaning.REFUSED, _FIX),
    "http_405": (Meaning.REFUSED, _FIX),
    "http_410": (Meaning.DEAD_TOKEN, "the token is dead"),
    "http_413": (Meaning.REFUSED, "the payload is over Apple's limit"),
    "http_429": (Meaning.THROTTLED, "too many requests"),
    "http_500": (Meaning.UNSURE, "Apple failed"),
    # Without Apple's word it may be a server in front that lost the one behind it.
    "http_502": (Meaning.UNSURE, "Apple is not available"),
    "http_503": (Meaning.UNSURE, "Apple is not available"),
    "http_504": (Meaning.UNSURE, "Apple is not available"),
}
"""The meaning of a status, for an answer without a reason that can be read."""
_DEAD_WITHOUT_A_WORD = "http_410"

BROADCAST_REASONS: dict[str, tuple[Meaning, str]] = {
    "FeatureNotEnabled": (Meaning.REFUSED, "broadcast is not switched on for the app's bundle id, on Apple's page"),
    "MissingChannelId": (Meaning.REFUSED, _FIX),
    "BadChannelId": (Meaning.REFUSED, "that is no channel id"),
    "ChannelNotRegistered": (Meaning.REFUSED, "there is no such channel in this environment"),
    "BadRequestParams": (Meaning.REFUSED, _FIX),
    "BadRequestPayload": (Meaning.REFUSED, "Apple cannot read the body"),
    "MissingPushType": (Meaning.REFUSED, _FIX),
    "BadExpirationDate": (Meaning.REFUSED, "a channel that stores nothing takes a ttl of 0 alone"),
    # The credential may push to devices all the same.
    "TopicMismatch": (Meaning.REFUSED, "the credential is not of the team that owns the bundle id"),
    # So spelled here.
    "Service Unavailable": (Meaning.NOT_TAKEN, "Apple is not available"),
    _DEAD_WITHOUT_A_WORD: (Meaning.REFUSED, "there is no such channel"),
}
"""What is said of broadcast channels beside (developer.apple.com, "Handling error responses from APNs")."""

WAIT_MS: dict[str, int] = {TOKEN_TOO_NEW: _MINUTE_MS}
"""The least wait in milliseconds, where the retry policy would be too eager."""


class _Body(Struct):
    reason: Raw = NOTHING
    timestamp: Raw = NOTHING
    """The time when the token was found dead, in milliseconds (410 only)."""


_decoder = msgspec.json.Decoder(_Body)


def reason_of(answer: Answer) -> str:
    """Read Apple's own word for a refusal; ``http_<status>`` where it gives none."""
    return word_of(_body(answer).reason) or f"http_{answer.status}"


def outcome_of(result: Result, delivery: Delivery, dead_token_codes: tuple[str, ...], now: Instant) -> Outcome:
    """Turn the result of one request into an outcome."""
    match result:
        case Answer() if is_success(result):
            return taken_of(result)
        case Answer():
            return _refusal(result, delivery, dead_token_codes, now)
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)


def taken_of(answer: Answer) -> Taken:
    """Read Apple's name for a notification that it took; "" where it gives none."""
    for name, value in answer.headers:
        if name in _IDS:
            return Taken(name_of(value.decode("latin-1")))
    return Taken()


def _refusal(answer: Answer, delivery: Delivery, dead_token_codes: tuple[str, ...], now: Instant) -> Outcome:
    code = reason_of(answer)
    said = (BROADCAST_REASONS if isinstance(delivery.address, Audience) else REASONS).get(code)
    unknown = (Meaning.UNSURE, f"an answer that Apple does not document, status {answer.status}")
    meaning, why = said or REASONS.get(code) or STATUSES.get(code, unknown)
    dead_code = "Unregistered" if code == _DEAD_WITHOUT_A_WORD else code
    if meaning is Meaning.DEAD_TOKEN and dead_code not in dead_token_codes:
        meaning = Meaning.REFUSED
    own_ms = _shutdown_wait_ms(delivery) if code == "Shutdown" else WAIT_MS.get(code)
    wait_ms = longer_ms(hint_ms(answer, meaning, now), own_ms)
    return outcome_of_meaning(meaning, code, why, wait_ms, _dead_since(answer, now))


def _dead_since(answer: Answer, now: Instant) -> Instant | None:
    """Read when Apple found the token dead; None where it does not say, or names a time that is not over yet."""
    since = number_of(_body(answer).timestamp)
    return Instant(since) if since is not None and 0 < since <= now else None


def _shutdown_wait_ms(delivery: Delivery) -> int:
    """Choose a wait of 5 to 10 s by the notification's random bits, so that not all come back at once."""
    return 5 * SECOND_MS + int.from_bytes(delivery.id[-2:], "big") % (5 * SECOND_MS + 1)


def _body(answer: Answer) -> _Body:
    return read_json(_decoder, answer.body) or _Body()
