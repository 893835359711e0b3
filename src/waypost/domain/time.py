"""Points in time and spans, both whole milliseconds, so that arithmetic needs no conversions."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)
"""Milliseconds since 1970-01-01T00:00:00Z, wall clock."""

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def later(instant: Instant, span_ms: int) -> Instant:
    """Return the instant *span_ms* milliseconds after *instant*."""
    return Instant(instant + span_ms)


def to_datetime(instant: Instant) -> datetime:
    """Convert an instant to an aware UTC datetime."""
    return datetime.fromtimestamp(instant / 1000, tz=UTC)


def from_datetime(moment: datetime) -> Instant:
    """Convert a datetime to milliseconds; a naive *moment* is a ValueError."""
    if moment.tzinfo is None:
        raise ValueError("a time needs an offset, such as Z")
    return Instant(round(moment.timestamp() * 1000))


def isoformat(instant: Instant) -> str:
    """Format an instant as RFC 3339 in UTC with milliseconds, the only form the API prints."""
    return f"{_second(instant // SECOND_MS)}.{instant % SECOND_MS:03d}Z"


@lru_cache(maxsize=4096)
def _second(second: int) -> str:
    """Format a second: much of what is said at one time names the same ones."""
    return datetime.fromtimestamp(second, tz=UTC).replace(tzinfo=None).isoformat()
