"""How much of something may happen in a time: a bucket that refills, or a window that begins anew."""

from __future__ import annotations

import math

from msgspec import Struct

from waypost.domain.time import SECOND_MS


class TokenBucket(Struct, frozen=True):
    """Full at first; what is taken comes back steadily, never above *size*."""

    size: int
    refill_per_s: float


class FixedWindow(Struct, frozen=True):
    """At most *limit* in each window; windows begin at whole multiples of their length since 1970."""

    limit: int
    window_ms: int


Limit = TokenBucket | FixedWindow


class Granted(Struct, frozen=True, tag=True):
    """Taken; *left* more could be taken now."""

    left: int


class Wait(Struct, frozen=True, tag=True):
    """Nothing was taken: there were only *left*; it may be enough after *wait_ms*, if nobody else takes it first."""

    left: int
    wait_ms: int


class Level(Struct, frozen=True):
    """What is left of a limit, as of a time."""

    left: float
    at_ms: float


def capacity(limit: Limit) -> int:
    """The most that can ever be taken at once."""
    return limit.size if isinstance(limit, TokenBucket) else limit.limit


def take(limit: Limit, level: Level | None, n: int, now_ms: float) -> tuple[Level, Granted | Wait]:
    """Take *n* if there is as much, and say what is left. Pure; None is a limit that nobody has used.

    More than the limit's capacity is a ValueError: it would wait for ever. A clock that goes back refills nothing.
    """
    if not 1 <= n <= capacity(limit):
        raise ValueError(f"{n} is not from 1 to {capacity(limit)}")
    match limit:
        case TokenBucket():
            left = limit.size if level is None else level.left
            past_ms = 0 if level is None else max(0, now_ms - level.at_ms)
            left = min(limit.size, left + past_ms * limit.refill_per_s / SECOND_MS)
            at_ms = now_ms if level is None else max(now_ms, level.at_ms)
            wait_ms = (n - left) / limit.refill_per_s * SECOND_MS
        case FixedWindow():
            at_ms = now_ms - now_ms % limit.window_ms
            if level is not None and level.at_ms >= at_ms:
                left, at_ms = level.left, level.at_ms
            else:
                left = limit.limit
            wait_ms = at_ms + limit.window_ms - now_ms
    if left < n:
        return Level(left, at_ms), Wait(math.floor(left), math.ceil(wait_ms))
    return Level(left - n, at_ms), Granted(math.floor(left - n))
