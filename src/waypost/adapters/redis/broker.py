"""A broker on Redis Streams.

    <prefix>{<lane>}:<app>    a stream for each lane and app, a lane in one slot: entries with the one field ``b``

One consumer group, ``waypost``; every reader is a consumer with a name that no other process has or had. An entry is
deleted when it is acknowledged, by its holder alone (XACK itself asks nobody who they are): nothing else is ever
trimmed. What is given back goes to the consumer ``-`` as if its lease had ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.adapters.redis.commands import Command, Redis, Script
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.ports.broker import Held

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
    local seen = redis.call('XPENDING', key, group, entry[1], entry[1], 1)[1]
    table.insert(taken[2], {entry[1], entry[2][2], seen[4]})
  end
  local fresh = wanted - #again[2]
  if fresh > 0 then
    local read = redis.call('XREADGROUP', 'GROUP', group, reader, 'COUNT', fresh, 'STREAMS', key, '>')
    for _, entry in ipairs(read and read[1][2] or {}) do
      table.insert(taken[2], {entry[1], entry[2][2], 1})
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
_FOR_OWNER = Script("""
local what, group, reader, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local refused = {}
for i = 5, #ARGV, 2 do
  local id = ARGV[i]
  local found = redis.pcall('XPENDING', KEYS[1], group, id, id, 1)
  local held = not found.err and found[1]
  if not held or held[2] ~= reader or held[4] ~= tonumber(ARGV[i + 1]) then
    table.insert(refused, id)
  elseif what == 'ack' then
    redis.call('XACK', KEYS[1], group, id)
    redis.call('XDEL', KEYS[1], id)
  elseif what == 'extend' then
    redis.call('XCLAIM', KEYS[1], group, reader, 0, id, 'JUSTID')
  else
    redis.call('XCLAIM', KEYS[1], group, '-', 0, id, 'IDLE', lease, 'JUSTID')
  end
end
return refused
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

    async def publish(self, lane: Lane, entries: Sequence[tuple[AppId, bytes]]) -> None:
        """See Broker."""
        await self._redis.execute([("XADD", self._stream(lane, app), "*", "b", body) for app, body in entries])

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
            found += [Held(app, body, place.decode(), delivery) for place, body, delivery in entries]
        return found

    async def extend(self, lane: Lane, held: Sequence[Held]) -> list[Held]:
        """See Broker."""
        return await self._for_owner("extend", lane, held)

    async def ack(self, lane: Lane, held: Sequence[Held]) -> list[Held]:
        """See Broker."""
        return await self._for_owner("ack", lane, held)

    async def give_back(self, lane: Lane, held: Sequence[Held]) -> list[Held]:
        """See Broker."""
        return await self._for_owner("give back", lane, held)

    async def _for_owner(self, what: str, lane: Lane, held: Sequence[Held]) -> list[Held]:
        by_app: dict[AppId, list[Held]] = {}
        for each in held:
            by_app.setdefault(each.app, []).append(each)
        said: list[Command] = []
        for app, group in by_app.items():
            places = [part for each in group for part in (each.place, each.delivery)]
            said.append(_FOR_OWNER([self._stream(lane, app)], what, GROUP, self._reader, self._lease_ms, *places))
        answers = await self._redis.execute(said) if said else []
        refused = {(app, place.decode()) for app, places in zip(by_app, answers, strict=True) for place in places}
        return [each for each in held if (each.app, each.place) in refused]

    def _stream(self, lane: Lane, app: AppId) -> str:
        return f"{self._prefix}{{{lane}}}:{app}"
