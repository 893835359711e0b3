"""Limits of how much may happen in a time: a bucket that refills, or a window that begins anew."""

from __future__ import annotations

import math
import re
from typing import Annotated, Final

from msgspec import Meta, Struct

from waypost.domain.time import SECOND_MS

RAMP_START: Final = 0.05
"""The part of a bucket, and of its refill, with which a ramp begins."""


_UNITS_S: Final = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_QUOTA: Final = re.compile(rf"([1-9][0-9]{{0,11}})/([1-9][0-9]{{0,5}})?({'|'.join(_UNITS_S)})")


class TokenBucket(Struct, frozen=True):
    """A limit that is full at first; what is taken comes back steadily, never above *size*.

    With a ramp it begins with a twentieth of both and comes to the whole of them in *ramp_s*; asked for nothing for as
    long, it begins anew.
    """

    size: int
    refill_per_s: float
    ramp_s: float = 0.0


class FixedWindow(Struct, frozen=True):
    """A limit of *limit* in each window; windows begin at whole multiples of their length since 1970."""

    limit: int
    window_ms: int


Limit = TokenBucket | FixedWindow


class Quota(Struct, frozen=True):
    """A window as an operator writes it: ``100/15min``, ``50000/s``, or ``unlimited``."""

    limit: Annotated[int, Meta(ge=0)]
    """0 is no limit."""
    window_s: Annotated[int, Meta(ge=1)] = 1

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Read what ``str`` writes; a ValueError explains the form."""
        if text == "unlimited":
            return UNLIMITED
        found = _QUOTA.fullmatch(text.replace(" ", ""))
        if found is None:
            raise ValueError("is written as `100/15min` (units: s, min, h, d), or `unlimited`")
        return cls(int(found[1]), int(found[2] or 1) * _UNITS_S[found[3]])

    @property
    def window(self) -> FixedWindow | None:
        """The limit, None where there is none."""
        return FixedWindow(self.limit, self.window_s * SECOND_MS) if self.limit else None

    def __str__(self) -> str:
        if not self.limit:
            return "unlimited"
        unit = next(unit for unit in reversed(_UNITS_S) if self.window_s % _UNITS_S[unit] == 0)
        count = self.window_s // _UNITS_S[unit]
        return f"{self.limit}/{'' if count == 1 else count}{unit}"


UNLIMITED: Final = Quota(0)


class Rate(Struct, frozen=True):
    """Limits for one provider by one credential, and for one device by it; None is no limit."""

    bucket: TokenBucket | None = None
    per_device: FixedWindow | None = None


class Granted(Struct, frozen=True, tag=True):
    """The answer that the amount was taken; *left* more could be taken now."""

    left: int


class Wait(Struct, frozen=True, tag=True):
    """The answer that nothing was taken: only *left* remain; try after *wait_ms*, if nobody else takes it first."""

    left: int
    wait_ms: int


class Remaining(Struct, frozen=True):
    """The amount left of a limit at a certain time."""

    left: float
    at_ms: float
    since_ms: float = 0.0
    """The time when its ramp began."""


def capacity(limit: Limit) -> int:
    """Return the most that can ever be taken at once."""
    return limit.size if isinstance(limit, TokenBucket) else limit.limit


def take(limit: Limit, level: Remaining | None, n: int, now_ms: float) -> tuple[Remaining, Granted | Wait]:
    """Take *n* if there is as much, and say what is left. Pure; None is a limit that nobody has used.

    More than the limit's capacity is a ValueError: it would wait for ever. A clock that goes back refills nothing.
    """
    if not 1 <= n <= capacity(limit):
        raise ValueError(f"{n} is not from 1 to {capacity(limit)}")
    match limit:
        case TokenBucket():
            left, at_ms, since_ms = _refilled(limit, level, now_ms)
            wait_ms = (n - left) / (limit.refill_per_s * _share(limit, at_ms - since_ms)) * SECOND_MS
        case FixedWindow():
            since_ms = 0.0
            at_ms = now_ms - now_ms % limit.window_ms
            if level is not None and level.at_ms >= at_ms:
                left, at_ms = level.left, level.at_ms
            else:
                left = limit.limit
            wait_ms = at_ms + limit.window_ms - now_ms
    if left < n:
        return Remaining(left, at_ms, since_ms), Wait(math.floor(left), math.ceil(wait_ms))
    return Remaining(left - n, at_ms, since_ms), Granted(math.floor(left - n))


def forgettable_at_ms(limit: Limit, level: Remaining) -> float:
    """Return the time from which *level* says no more than None does, in milliseconds."""
    match limit:
        case TokenBucket():
            full_in_s = (limit.size - level.left) / limit.refill_per_s
            return level.at_ms + max(full_in_s, limit.ramp_s) * SECOND_MS
        case FixedWindow():
            return level.at_ms + limit.window_ms


def _refilled(bucket: TokenBucket, level: Remaining | None, now_ms: float) -> tuple[float, float, float]:
    """Compute what is left now; return it, the time it holds for, and when the ramp began."""
    ramp_ms = bucket.ramp_s * SECOND_MS
    if level is None or (ramp_ms and now_ms - level.at_ms >= ramp_ms):
        return bucket.size * _share(bucket, 0.0), now_ms, now_ms
    at_ms, since_ms = max(now_ms, level.at_ms), level.since_ms
    came = _area(bucket, at_ms - since_ms) - _area(bucket, level.at_ms - since_ms) if ramp_ms else at_ms - level.at_ms
    most = bucket.size * _share(bucket, at_ms - since_ms)
    return min(most, level.left + came * bucket.refill_per_s / SECOND_MS), at_ms, since_ms


def _share(bucket: TokenBucket, age_ms: float) -> float:
    """Return the part of the bucket, 0 to 1, that is available at *age_ms* into its ramp."""
    ramp_ms = bucket.ramp_s * SECOND_MS
    return 1.0 if age_ms >= ramp_ms else RAMP_START + (1 - RAMP_START) * age_ms / ramp_ms


def _area(bucket: TokenBucket, age_ms: float) -> float:
    """Sum up the shares up to *age_ms*, in milliseconds of the whole refill."""
    ramp_ms = bucket.ramp_s * SECOND_MS
    short = max(0.0, ramp_ms - age_ms)
    return age_ms - (1 - RAMP_START) * (ramp_ms / 2 - short * short / (2 * ramp_ms))
