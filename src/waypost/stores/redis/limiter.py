"""Limits that all processes share, each decided by one script on the server's clock.

<prefix>limit:<name>    hash: ``left``, ``at`` and ``since``, as domain.limits.Remaining; gone once it says nothing
"""

from __future__ import annotations

from typing import Final

from waypost.domain.limits import RAMP_START, FixedWindow, Granted, Limit, TokenBucket, Wait, capacity
from waypost.domain.time import SECOND_MS
from waypost.stores.redis.commands import Redis, Script

_START: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local most, pace, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.call('HMGET', KEYS[1], 'left', 'at', 'since')
local left, at, since = tonumber(kept[1]), tonumber(kept[2]), tonumber(kept[3]) or 0
"""
_END: Final = """
local granted = left >= n
if granted then left = left - n end
redis.call('HSET', KEYS[1], 'left', string.format('%.17g', left), 'at', string.format('%.0f', at),
  'since', string.format('%.0f', since))
redis.call('PEXPIRE', KEYS[1], math.ceil(full))
return {granted and 1 or 0, math.floor(left), math.ceil(wait)}
"""
_BUCKET = Script(f"""{_START}
local ramp, first = tonumber(ARGV[4]), tonumber(ARGV[5])
local function share(age) return age >= ramp and 1 or first + (1 - first) * age / ramp end
local function area(age)
  if ramp == 0 then return age end
  local short = math.max(0, ramp - age)
  return age - (1 - first) * (ramp / 2 - short * short / (2 * ramp))
end
if not at or (ramp > 0 and now - at >= ramp) then
  left, at, since = most * share(0), now, now
else
  local before = at
  at = math.max(at, now)
  left = math.min(most * share(at - since), left + (area(at - since) - area(before - since)) * pace / 1000)
end
local wait = (n - left) * 1000 / (pace * share(at - since))
local full = math.max((most - left + n) * 1000 / pace, ramp) + 1000
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
                said = _BUCKET(key, limit.size, limit.refill_per_s, n, limit.ramp_s * SECOND_MS, RAMP_START)
            case FixedWindow():
                said = _WINDOW(key, limit.limit, limit.window_ms, n)
        ((granted, left, wait_ms),) = await self._redis.execute([said])
        return Granted(left) if granted else Wait(left, wait_ms)
