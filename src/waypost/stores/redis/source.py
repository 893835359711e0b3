"""A Redis Stream that other programs write, read by a consumer group.

A reader has a name that no other process has or had. What it holds for longer than `claim_idle_ms` goes to whoever
looks first; a reader that ends gives all of it back at once, to a consumer that stands for nobody. The stream itself is
never trimmed here: it is its producers' own. Dead letters are copies, with the fields

    waypost:code  waypost:why  waypost:stream  waypost:entry        and behind them the entry's own
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Sequence
from typing import Final

from waypost.domain.errors import Unavailable
from waypost.ports.source import Foreign, ReadingLag, RefusedMessage
from waypost.stores.redis.check import look
from waypost.stores.redis.commands import RedisAway, Reply, Script
from waypost.stores.redis.opening import redis_of
from waypost.stores.redis.settings import RedisSourceSettings
from waypost.telemetry import Silent

NOBODY: Final = "waypost-nobody"
DEAD_LIMIT: Final = 100_000
"""The least dead letters that are kept; the oldest go (XADD MAXLEN ~)."""
_FIELDS_COPIED: Final = 1_000
_AGO_MS: Final = 24 * 3_600_000
"""Longer than anything may be idle; a reader that holds nothing and was silent for so long is forgotten."""

_JOIN = Script("""
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], 0, 'MKSTREAM')
for _, one in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local is_ours = string.sub(one[2], 1, 8) == 'waypost-'
  if is_ours and one[4] == 0 and one[6] > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], one[2])
  end
end
""")
_BURY = Script("""
local at = 4
for _ = 1, tonumber(ARGV[3]) do
  local id, size = ARGV[at], tonumber(ARGV[at + 1])
  if redis.call('XACK', KEYS[1], ARGV[1], id) == 1 then
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, at + 2, at + 1 + size))
  end
  at = at + 2 + size
end
""")
_LEAVE = Script("""
local group, reader, nobody, ago = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
while true do
  local held = redis.pcall('XPENDING', KEYS[1], group, '-', '+', 1000, reader)
  if held.err then return 0 end
  if #held == 0 then return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, reader) end
  local ids = {}
  for i, each in ipairs(held) do ids[i] = each[1] end
  for _, word in ipairs({'IDLE', ago, 'JUSTID'}) do table.insert(ids, word) end
  redis.call('XCLAIM', KEYS[1], group, nobody, 0, unpack(ids))
end
""")


class RedisSource:
    """A source on a Redis stream: see Source."""

    def __init__(self, settings: RedisSourceSettings, *, measures: bool) -> None:
        """Create the reader; of all readers of a machine one *measures*: the backlog is the group's, not a reader's."""
        self.stream = settings.stream
        self._group = settings.group
        self._dead = settings.dead_letters_stream
        self._claim_idle_ms = settings.claim_idle_ms
        self._block_ms = int(settings.timeout_s * 500)
        self._reader = f"waypost-{uuid.uuid4().hex}"
        self._measures = measures
        self._reading = redis_of(settings, Silent())
        self._writing = redis_of(settings, Silent())
        self._loop = asyncio.get_running_loop()
        self._scanned = b"0-0"
        """The id up to which the stream was searched for what others hold too long."""
        self._scan_at_s = 0.0
        self._is_started = False
        self._is_member = False
        self._most = 1

    async def look(self) -> str:
        """See Source."""
        await self._writing.start()
        try:
            found = await look(self._writing)
            (length,) = await self._writing.execute([("XLEN", self.stream)])
        finally:
            await self._writing.stop()
        if found.too_old:
            raise Unavailable(f"Redis {found.version} is older than 7.0")
        return f"Redis {found.version}, {self.stream}: {length} entries"

    async def start(self) -> None:
        """See Source."""
        self._is_started = True
        await asyncio.gather(self._reading.start(), self._writing.start())

    async def stop(self) -> None:
        """See Source."""
        await self._reading.stop()
        if not self._is_started:
            return
        with contextlib.suppress(RedisAway):  # others take over what has been idle for long enough
            await self._writing.execute([_LEAVE([self.stream], self._group, self._reader, NOBODY, _AGO_MS)])
        await self._writing.stop()

    async def read(self, n: int) -> list[Foreign]:
        """See Source; after a failure less is asked for, since an answer may have been too large to come in time."""
        self._most = min(n, self._most)
        try:
            if not self._is_member:
                await self._join()
            found = await self._claimed() or await self._fresh()
        except RedisAway:
            self._is_member = False
            self._most = max(1, self._most // 2)
            raise
        self._most = min(n, 2 * self._most)
        return [Foreign(place.decode(), dict(zip(flat[::2], flat[1::2], strict=True))) for place, flat in found]

    async def ack(self, messages: Sequence[Foreign]) -> None:
        """See Source."""
        if messages:
            await self._writing.execute([("XACK", self.stream, self._group, *[each.place for each in messages])])

    async def bury(self, refused: Sequence[RefusedMessage]) -> None:
        """See Source: both in one step, and only what was not acknowledged before."""
        letters: list[str | bytes | int] = []
        for each in refused:
            entry = each.message
            head: list[str | bytes] = ["waypost:code", each.code, "waypost:why", each.why]
            head += ["waypost:stream", self.stream, "waypost:entry", entry.place]
            own = [part for pair in list(entry.fields.items())[:_FIELDS_COPIED] for part in pair]
            letters += [entry.place, len(head) + len(own), *head, *own]
        bury = _BURY([self.stream, self._dead], self._group, DEAD_LIMIT, len(refused), *letters)
        await self._writing.execute([bury])

    async def behind(self) -> ReadingLag:
        """See Source."""
        if not self._measures:
            return ReadingLag(None, None)
        (groups,) = await self._writing.execute([("XINFO", "GROUPS", self.stream)])
        told = (dict(zip(each[::2], each[1::2], strict=True)) for each in groups)
        ours = next((each for each in told if each[b"name"] == self._group.encode()), {})
        return ReadingLag(ours.get(b"lag"), ours.get(b"pending"))

    async def _claimed(self) -> list[Reply]:
        """Claim what others have held for too long; looked for twice in that time."""
        if self._loop.time() < self._scan_at_s:
            return []
        claim = ("XAUTOCLAIM", self.stream, self._group, self._reader, self._claim_idle_ms, self._scanned)
        ((self._scanned, found, *_),) = await self._reading.execute([(*claim, "COUNT", self._most)])
        if self._scanned == b"0-0":
            self._scan_at_s = self._loop.time() + self._claim_idle_ms / 2_000
        return list(found)

    async def _fresh(self) -> list[Reply]:
        read = ("XREADGROUP", "GROUP", self._group, self._reader, "COUNT", self._most, "BLOCK", self._block_ms)
        (found,) = await self._reading.execute([(*read, "STREAMS", self.stream, ">")])
        return list(found[0][1]) if found else []

    async def _join(self) -> None:
        """Make the group where it is missing: also where somebody emptied the database."""
        await self._reading.execute([_JOIN([self.stream], self._group, _AGO_MS)])
        self._is_member = True
