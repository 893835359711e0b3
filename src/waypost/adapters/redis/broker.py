"""A broker on Redis Streams.

    <prefix>{<lane>}:<app>    a stream for each lane and app, a lane in one slot: entries with the one field ``b``

One consumer group, ``waypost``; every reader is a consumer with a name that no other process has or had. An entry is
deleted when it is acknowledged, by its holder alone (XACK itself asks nobody who they are): nothing else is ever
trimmed. A reader that says nothing of what it has for as long as a lease lasts is given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.adapters.redis.commands import Redis, Script
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.ports.broker import Entry, Held

GROUP: Final = "waypost"
IDLE_READER_MS: Final = 24 * 3_600_000
"""A reader that holds nothing and was silent for so long is forgotten, when another one reads for the first time."""

_READ = Script("""
local group, reader, lease, left, idle = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local answer = {}
local function take(i, wanted)
  local key, taken = KEYS[i], answer[i]
  local again = redis.pcall('XAUTOCLAIM', key, group, reader, lease, taken[1], 'COUNT', wanted)
  if again.err then
    redis.call('XGROUP', 'CREATE', key, group, 0, 'MKSTREAM')
    again = {'0-0', {}}
  end
  taken[1] = again[1]
  for _, entry in ipairs(again[2]) do
    table.insert(taken[2], {entry[1], entry[2][2]})
  end
  local fresh = wanted - #again[2]
  if fresh > 0 then
    local read = redis.call('XREADGROUP', 'GROUP', group, reader, 'COUNT', fresh, 'STREAMS', key, '>')
    for _, entry in ipairs(read and read[1][2] or {}) do
      table.insert(taken[2], {entry[1], entry[2][2]})
      fresh = fresh - 1
    end
  end
  left = left - wanted + math.max(fresh, 0)
end
for i, key in ipairs(KEYS) do
  local first = ARGV[5 + i] == ''
  answer[i] = {first and '0-0' or ARGV[5 + i], {}}
  local readers = first and redis.pcall('XINFO', 'CONSUMERS', key, group) or {}
  for _, one in ipairs(readers.err and {} or readers) do
    if one[4] == 0 and one[6] > idle then redis.call('XGROUP', 'DELCONSUMER', key, group, one[2]) end
  end
end
for i = 1, #KEYS do
  if left > 0 then take(i, math.ceil(left / (#KEYS - i + 1))) end
end
for i = 1, #KEYS do
  if left > 0 then take(i, left) end
end
return answer
""")
_ACK = Script("""
local group, reader = ARGV[1], ARGV[2]
for i = 3, #ARGV do
  local id = ARGV[i]
  local found = redis.pcall('XPENDING', KEYS[1], group, id, id, 1)
  local held = not found.err and found[1]
  if held and held[2] == reader then
    redis.call('XACK', KEYS[1], group, id)
    redis.call('XDEL', KEYS[1], id)
  end
end
""")


class RedisBroker:
    """See Broker; one reader."""

    def __init__(self, redis: Redis, prefix: str, apps: Sequence[AppId], reader: str, lease_ms: int) -> None:
        """*apps* are all there are; *reader* is a name that no other process has or had."""
        self._redis = redis
        self._prefix = prefix
        self._turns = {lane: list(apps) for lane in Lane}
        self._reader = reader
        self._lease_ms = lease_ms
        self._scanned: dict[str, bytes] = {}
        """How far each stream was searched for ended leases."""

    async def publish(self, lane: Lane, entries: Sequence[Entry]) -> None:
        """See Broker."""
        await self._redis.execute([("XADD", self._stream(lane, each.app), "*", "b", each.body) for each in entries])

    async def read(self, lane: Lane, n: int) -> list[Held]:
        """See Broker: one round trip; who was first this time is last the next time."""
        turns = self._turns[lane]
        turns.append(turns.pop(0))
        streams = [self._stream(lane, app) for app in turns]
        scanned = [self._scanned.get(stream, b"") for stream in streams]
        (answer,) = await self._redis.execute(
            [_READ(streams, GROUP, self._reader, self._lease_ms, n, IDLE_READER_MS, *scanned)]
        )
        found: list[Held] = []
        for app, stream, (reached, entries) in zip(turns, streams, answer, strict=True):
            self._scanned[stream] = reached
            found += [Held(app, body, place.decode()) for place, body in entries]
        return found

    async def ack(self, lane: Lane, held: Sequence[Held]) -> None:
        """See Broker."""
        by_app: dict[AppId, list[str]] = {}
        for each in held:
            by_app.setdefault(each.app, []).append(each.place)
        await self._redis.execute(
            [_ACK([self._stream(lane, app)], GROUP, self._reader, *places) for app, places in by_app.items()]
        )

    def _stream(self, lane: Lane, app: AppId) -> str:
        return f"{self._prefix}{{{lane}}}:{app}"
