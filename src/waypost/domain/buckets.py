"""Buckets: the hours and days of a time zone, made of quarters of an hour. Pure.

No zone's offset is anything but whole quarters of an hour today, so that every hour and day is a sum of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from waypost.domain.time import DAY_MS, HOUR_MS, Instant, from_datetime
from waypost.domain.tracked import SLOT_MS

SLOTS_A_DAY: Final = DAY_MS // SLOT_MS
SLOTS_AN_HOUR: Final = HOUR_MS // SLOT_MS


class Bucket(StrEnum):
    """A span of time that is counted together."""

    HOUR = "hour"
    DAY = "day"


class Span(Struct, frozen=True):
    """Slots, from *since* up to before *until*, in which the zone has one offset."""

    since: int
    until: int
    shift: int
    """What is added to a slot so that buckets are whole multiples of their size, in slots."""


def spans_of(zone: ZoneInfo, bucket: Bucket, since: Instant, until: Instant) -> list[Span]:
    """Cut a span of time where the zone's clocks change."""
    first, last = since // SLOT_MS, -(-until // SLOT_MS)
    edges = [first, *_changes(zone, first, last), last]
    return [Span(start, end, _shift(zone, bucket, start)) for start, end in pairwise(edges) if start < end]


def start_of(zone: ZoneInfo, bucket: Bucket, number: int, shift: int) -> Instant:
    """Return when bucket *number* of a span with *shift* begins; a day on which clocks change begins once."""
    if bucket is Bucket.HOUR:
        return Instant((number * SLOTS_AN_HOUR - shift) * SLOT_MS)
    date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=number)
    return from_datetime(datetime(date.year, date.month, date.day, tzinfo=zone))


def size_of(bucket: Bucket) -> int:
    """Return how many slots a bucket has, on a day without a change of clocks."""
    return SLOTS_AN_HOUR if bucket is Bucket.HOUR else SLOTS_A_DAY


def _shift(zone: ZoneInfo, bucket: Bucket, slot: int) -> int:
    offset = _offset(zone, slot)
    return offset % SLOTS_AN_HOUR if bucket is Bucket.HOUR else offset


def _changes(zone: ZoneInfo, first: int, last: int) -> Iterator[int]:
    """Yield the slots, after *first* and before *last*, from which another offset holds."""
    at = first
    while at < last:
        ahead = min(at + SLOTS_A_DAY, last)
        low, high = at, ahead
        if _offset(zone, low) != _offset(zone, high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if _offset(zone, middle) != _offset(zone, at) else (middle, high)
            if high < last:
                yield high
        at = ahead


def _offset(zone: ZoneInfo, slot: int) -> int:
    offset = datetime.fromtimestamp(slot * SLOT_MS / 1000, tz=zone).utcoffset() or timedelta()
    return round(offset.total_seconds() * 1000) // SLOT_MS
