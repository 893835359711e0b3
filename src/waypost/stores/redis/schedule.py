"""Due times on Redis.

<prefix>{delayed_queue}           sorted set: id -> when it is due next, milliseconds; a claim moves it on
<prefix>{delayed_queue}:bodies    hash: id -> body
<prefix>{delayed_queue}:claims    hash: id -> token of its claim
<prefix>{delayed_queue}:failures  hash: id -> how often it was put back
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from waypost.domain.time import Instant, later
from waypost.ports.broker import Claimed, Due
from waypost.stores.redis.commands import Redis, Script

_PUT = Script("""
for i = 1, #ARGV, 3 do
  redis.call('ZADD', KEYS[1], ARGV[i + 1], ARGV[i])
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
  redis.call('HDEL', KEYS[3], ARGV[i])
  redis.call('HDEL', KEYS[4], ARGV[i])
end
""")
_CLAIM = Script("""
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
  local at = redis.call('ZSCORE', KEYS[1], id)
  redis.call('ZADD', KEYS[1], ARGV[3], id)
  redis.call('HSET', KEYS[3], id, ARGV[4])
  local failures = tonumber(redis.call('HGET', KEYS[4], id) or 0)
  table.insert(found, {id, redis.call('HGET', KEYS[2], id), at, failures})
end
return found
""")
_END = Script("""
local refused = {}
for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  if redis.call('HGET', KEYS[3], id) ~= ARGV[i + 1] then
    table.insert(refused, id)
  else
    redis.call('HDEL', KEYS[3], id)
    if ARGV[1] ~= '' then
      redis.call('ZADD', KEYS[1], ARGV[1], id)
      redis.call('HINCRBY', KEYS[4], id, 1)
    else
      redis.call('ZREM', KEYS[1], id)
      redis.call('HDEL', KEYS[2], id)
      redis.call('HDEL', KEYS[4], id)
    end
  end
end
return refused
""")
_DROP = Script("""
for i = 2, 4 do redis.call('HDEL', KEYS[i], unpack(ARGV)) end
return redis.call('ZREM', KEYS[1], unpack(ARGV))
""")


class RedisSchedule:
    """The schedule in Redis: see Schedule; never the only holder of what is due."""

    def __init__(self, redis: Redis, prefix: str, claim_ms: int = 60_000) -> None:
        """Create it; *claim_ms*: how long a claim holds that is neither confirmed nor put back."""
        self._redis = redis
        name = f"{prefix}{{delayed_queue}}"
        self._keys = [name, f"{name}:bodies", f"{name}:claims", f"{name}:failures"]
        self._claim_ms = claim_ms

    async def put(self, entries: Sequence[Due]) -> None:
        """See Schedule."""
        said = [part for due in entries for part in (due.id, due.at, due.body)]
        await self._redis.execute([_PUT(self._keys, *said)])

    async def claim(self, now: Instant, n: int) -> list[Claimed]:
        """See Schedule."""
        token = os.urandom(16)
        (found,) = await self._redis.execute([_CLAIM(self._keys, now, n, later(now, self._claim_ms), token)])
        return [Claimed(Due(id_, body, Instant(int(at))), token, failures) for id_, body, at, failures in found]

    async def confirm(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        """See Schedule."""
        return await self._end(claimed, "")

    async def put_back(self, claimed: Sequence[Claimed], at: Instant) -> list[Claimed]:
        """See Schedule."""
        return await self._end(claimed, at)

    async def drop(self, ids: Sequence[bytes]) -> int:
        """See Schedule."""
        if not ids:
            return 0
        (dropped,) = await self._redis.execute([_DROP(self._keys, *ids)])
        return int(dropped)

    async def _end(self, claimed: Sequence[Claimed], at: Instant | str) -> list[Claimed]:
        said = [part for each in claimed for part in (each.due.id, each.token)]
        (refused,) = await self._redis.execute([_END(self._keys, at, *said)])
        return [each for each in claimed if each.due.id in refused]
