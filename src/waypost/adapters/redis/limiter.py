"""Limits that all processes share, each decided by one script on the server's clock.

<prefix>limit:<name>    hash: ``left`` and ``at``, as domain.limits.Level; gone once it is full again
"""

from __future__ import annotations

from typing import Final

from waypost.adapters.redis.commands import Redis, Script
from waypost.domain.limits import FixedWindow, Granted, Limit, TokenBucket, Wait, capacity

_START: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most, pace, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.call('HMGET', KEYS[1], 'left', 'at')
local left, at = tonumber(kept[1]), tonumber(kept[2])
"""
_END: Final = """
local granted = left >= n
if granted then left = left - n end
redis.call('HSET', KEYS[1], 'left', string.format('%.17g', left), 'at', string.format('%.0f', at))
redis.call('PEXPIRE', KEYS[1], math.ceil(full))
return {granted and 1 or 0, math.floor(left), math.ceil(wait)}
"""
_BUCKET = Script(f"""{_START}
left, at = left or most, at or now
left = math.min(most, left + math.max(0, now - at) * pace / 1000)
at = math.max(at, now)
local wait = (n - left) * 1000 / pace
local full = (most - left + n) * 1000 / pace + 1000
{_END}""")
_WINDOW = Script(f"""{_START}
local begin = now - now % pace
if not at or at < begin then left, at = most, begin end
local wait = at + pace - now
local full = wait
{_END}""")


class RedisLimiter:
    """See Limiter."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self._redis = redis
        self._prefix = f"{prefix}limit:"

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """See Limiter; RedisAway is neither an answer nor a promise that nothing was taken."""
        if not 1 <= n <= capacity(limit):
            raise ValueError(f"{n} is not from 1 to {capacity(limit)}")
        key = [self._prefix + name]
        match limit:
            case TokenBucket():
                said = _BUCKET(key, limit.size, limit.refill_per_s, n)
            case FixedWindow():
                said = _WINDOW(key, limit.limit, limit.window_ms, n)
        ((granted, left, wait_ms),) = await self._redis.execute([said])
        return Granted(left) if granted else Wait(left, wait_ms)
