"""Every answer of a push server and what it means for a delivery.

Sources: UnifiedPush, "Server to application" (SERV_1.2: 2xx, 3xx, 400, 404, 413, 429, others) and RFC 8030 for servers
that are Web Push services; ntfy's documentation for 507. The status alone decides: what servers write beside it
differs, and none of it is kept. No answer speaks of another server, so none refuses the app's identity as a whole.
docs/providers/unifiedpush.md has the same table for operators.
"""

from __future__ import annotations

from typing import assert_never

from waypost.channels.push.answers import Meaning, outcome_of_meaning, outcome_without_answer
from waypost.channels.push.retry_after import hint_ms
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.time import Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

_NOT_LET = "the push server does not let us send: it wants another VAPID key, or its access rules forbid it"
_GONE = "the registration has ended"
_FAILED = "the push server failed"

STATUSES: dict[int, tuple[Meaning, str]] = {
    400: (Meaning.REFUSED, "the push server does not understand the request"),
    401: (Meaning.REFUSED, _NOT_LET),
    403: (Meaning.REFUSED, _NOT_LET),
    404: (Meaning.DEAD_TOKEN, _GONE),
    405: (Meaning.REFUSED, "what answers there is no push server"),
    410: (Meaning.DEAD_TOKEN, _GONE),
    413: (Meaning.REFUSED, "the message is too large for the push server"),
    # "SHOULD honor limits per endpoint, not host"
    429: (Meaning.THROTTLED, "too many requests"),
    500: (Meaning.UNSURE, _FAILED),
    502: (Meaning.UNSURE, _FAILED),
    503: (Meaning.UNSURE, "the push server is not available"),
    504: (Meaning.UNSURE, _FAILED),
    # ntfy: the device's distributor has not been seen for a while, and comes back
    507: (Meaning.UNSURE, "nobody listens at the endpoint at the moment"),
}
"""The code is ``http_<status>``."""

REDIRECTED = (Meaning.REFUSED, "redirects are not followed")


def outcome_of(result: Result, now: Instant) -> Outcome:
    """Turn the result of one request into an outcome."""
    match result:
        case Answer(status=status) if 200 <= status < 300:
            return Taken()
        case Answer(status=status):
            unknown = (Meaning.UNSURE, f"an answer that no push server documents, status {status}")
            meaning, why = REDIRECTED if 300 <= status < 400 else STATUSES.get(status, unknown)
            return outcome_of_meaning(meaning, f"http_{status}", why, hint_ms(result, meaning, now))
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)
