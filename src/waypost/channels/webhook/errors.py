"""Every answer of a receiver and what it means for a delivery.

Source: Standard Webhooks 1.0, "Operational considerations" (2xx, 3xx, 410, 429, ``retry-after``). Requirements
S4-45 and S4-46: 5xx is tried again, any other 4xx is not. The answer's body is never read.
docs/webhooks.md has the same table for receivers.
"""

from __future__ import annotations

from typing import Final, assert_never

from waypost.channels.push.answers import Meaning, outcome_of_meaning, outcome_without_answer
from waypost.channels.push.retry_after import hint_ms
from waypost.domain.outcome import Outcome, Taken
from waypost.domain.time import Instant
from waypost.http2 import Answer, Result, Unknown, Unsent

REFUSED: Final = (Meaning.REFUSED, "the receiver refuses the request")
REDIRECTED: Final = (Meaning.REFUSED, "redirects are not followed")
FAILED: Final = (Meaning.UNSURE, "the receiver failed")

STATUSES: Final[dict[int, tuple[Meaning, str]]] = {
    408: (Meaning.UNSURE, "the receiver waited too long for the request"),
    410: (Meaning.DEAD_TOKEN, "the receiver wants nothing any more"),
    429: (Meaning.THROTTLED, "too many requests"),
}
"""The answers that mean something else than their hundred; the code is ``http_<status>``."""


def outcome_of(result: Result, now: Instant) -> Outcome:
    """Turn the result of one request into an outcome."""
    match result:
        case Answer(status=status) if 200 <= status < 300:
            return Taken()
        case Answer(status=status):
            meaning, why = STATUSES.get(status) or _of_its_hundred(status)
            return outcome_of_meaning(meaning, f"http_{status}", why, hint_ms(result, meaning, now))
        case Unsent() | Unknown():
            return outcome_without_answer(result)
        case _:
            assert_never(result)


def _of_its_hundred(status: int) -> tuple[Meaning, str]:
    if 300 <= status < 400:
        return REDIRECTED
    return REFUSED if 400 <= status < 500 else FAILED
