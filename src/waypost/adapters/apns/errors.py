"""Every answer of APNs and what it means for a delivery: one table.

Source: developer.apple.com, "Handling notification responses from APNs"; what the wire says differently is noted.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Struct

from waypost.adapters.push.answers import Meaning, outcome_of_meaning, outcome_without_answer, read_json
from waypost.adapters.push.retry_after import retry_after_ms
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.time import SECOND_MS, Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

EXPIRED_JWT = "ExpiredProviderToken"
"""The sender answers it itself first: with a new token, once."""
UNKNOWN_DEVICE = "BadDeviceToken"
"""The sender answers it itself first: at the other environment, once."""
CONNECTION_OVER = ("IdleTimeout", "UnrelatedKeyIdInToken", "Shutdown")
"""Said of the connection (the second: it takes no other key). It is given up, and a retry goes over a new one."""
WRONG_TOPIC = "DeviceTokenNotForTopic"

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
    "TooManyProviderTokenUpdates": (Meaning.THROTTLED_WHOLE, "the provider token was renewed too often"),
    "TooManyRequests": (Meaning.THROTTLED, "too many requests to one token"),
    "InternalServerError": (Meaning.UNSURE, "Apple failed"),
    "ServiceUnavailable": (Meaning.NOT_TAKEN, "Apple is not available"),
    "Shutdown": (Meaning.NOT_TAKEN, "Apple's server is shutting down"),
}

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
}
"""What is said of broadcast channels beside (developer.apple.com, "Handling error responses from APNs")."""

WAIT_MS: dict[str, int] = {"TooManyProviderTokenUpdates": _MINUTE_MS}
"""What to wait where Apple says nothing and the retry policy would be too eager."""


class _Body(Struct):
    reason: str = ""
    timestamp: Instant | None = None
    """When the token was found dead, in milliseconds (410 only)."""


_decoder = msgspec.json.Decoder(_Body)


def reason_of(answer: Answer) -> str:
    """Apple's own word; ``http_<status>`` where it gives none."""
    return _body(answer).reason or f"http_{answer.status}"


def outcome_of(result: Result, delivery: Delivery, dead_token_codes: tuple[str, ...], now: Instant) -> Outcome:
    """What one request came to."""
    match result:
        case Answer(status=200, headers=headers):
            ids = (b"apns-id", b"apns-request-id")
            return Taken(next((value.decode("latin-1") for name, value in headers if name in ids), ""))
        case Answer():
            return _refusal(result, delivery, dead_token_codes, now)
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)


def _refusal(answer: Answer, delivery: Delivery, dead_token_codes: tuple[str, ...], now: Instant) -> Outcome:
    code = reason_of(answer)
    said = (BROADCAST_REASONS if delivery.notification.content.to is not None else REASONS).get(code)
    unknown = (Meaning.UNSURE, f"an answer that Apple does not document, status {answer.status}")
    meaning, why = said or REASONS.get(code, unknown)
    if meaning is Meaning.DEAD_TOKEN and code not in dead_token_codes:
        meaning = Meaning.REFUSED
    wait_ms = retry_after_ms(answer, now)
    if wait_ms is None:
        wait_ms = _shutdown_wait_ms(delivery) if code == "Shutdown" else WAIT_MS.get(code)
    return outcome_of_meaning(meaning, code, why, wait_ms, dead_since=_body(answer).timestamp)


def _shutdown_wait_ms(delivery: Delivery) -> int:
    """5 to 10 s, spread by the notification's random bits, so that not all come back at once."""
    return 5 * SECOND_MS + int.from_bytes(delivery.notification.id[-2:], "big") % (5 * SECOND_MS + 1)


def _body(answer: Answer) -> _Body:
    return read_json(_decoder, answer.body) or _Body()
