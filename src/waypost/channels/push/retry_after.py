"""The time that an answer asks to be left alone (RFC 9110, section 10.2.3)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Final

from waypost.channels.push.answers import Meaning
from waypost.domain.time import MINUTE_MS, SECOND_MS, Instant
from waypost.http2 import Answer

PROBED_MS: Final = MINUTE_MS
"""The most milliseconds that a hint about all sends counts for: as often an open breaker tries the provider."""


def hint_ms(answer: Answer, meaning: Meaning, now: Instant) -> int | None:
    """Return how long the message is to wait, ms: as told, unless that speaks of all messages.

    A quota may be refilled, or be somebody else's who stands between, long before the hours are over that were asked
    for. It costs the message no retry to find that out; where it does, after a 503, the hint is kept to.
    """
    told_ms = retry_after_ms(answer, now)
    if told_ms is None or meaning is not Meaning.THROTTLED_WHOLE:
        return told_ms
    return min(told_ms, PROBED_MS)


def retry_after_ms(answer: Answer, now: Instant) -> int | None:
    """Return the milliseconds to wait from *now*, from seconds or a date; None without a readable hint."""
    for name, value in answer.headers:
        if name == b"retry-after":
            return _wait_ms(value.decode("latin-1").strip(), now)
    return None


def longer_ms(hint_ms: int | None, own_ms: int | None) -> int | None:
    """Return the longer of the provider's wait and of its documentation's; None where there is neither."""
    given = [wait_ms for wait_ms in (hint_ms, own_ms) if wait_ms is not None]
    return max(given, default=None)


def _wait_ms(text: str, now: Instant) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text) * SECOND_MS
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0, int(moment * SECOND_MS) - now)
