"""Jobs in a Redis stream that others fill: a consumer in a consumer group.

    <stream>                               the producers' own: nothing of it is deleted or trimmed here
    waypost:job:<stream>:<group>:<entry>   what is kept of an open entry, until it is acknowledged or NOTE_MS are over

XACK and XCLAIM ask nobody who they are: here a script looks first whether the entry is still this consumer's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from waypost.ports.jobs import HandedJob
from waypost.stores.redis.commands import Command, Redis, RedisAway, Reply, Script
from waypost.telemetry import Event, Telemetry

NOTE_MS: Final = 7 * 24 * 3_600_000
"""Milliseconds that notes are kept, longer than an entry stays open, if somebody else acknowledges it."""
IDLE_CONSUMER_MS: Final = 3_600_000
"""A consumer that holds nothing and was silent for so long is forgotten: each process has a name of its own."""
BLOCK_MS: Final = 5_000
AWAY_S: Final = 0.5

_OPEN = Script("""
redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], 0, 'MKSTREAM')
for _, one in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  if one[4] == 0 and one[6] > tonumber(ARGV[2]) then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], one[2]) end
end
return redis.call('EXISTS', KEYS[1])
""")
_MINE = """
local group, reader = ARGV[1], ARGV[2]
local function mine(id)
  local found = redis.pcall('XPENDING', KEYS[1], group, id, id, 1)
  return not found.err and found[1] and found[1][2] == reader
end
"""
_HOLD = Script(
    _MINE
    + """
local held = {}
for i = 3, #ARGV do
  local id = ARGV[i]
  if mine(id) then
    redis.call('XCLAIM', KEYS[1], group, reader, 0, id, 'JUSTID')
    table.insert(held, id)
  end
end
return held
"""
)
_KEEP = Script(
    _MINE
    + """
if mine(ARGV[3]) then redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5]) end
return 1
"""
)
_FINISH = Script(
    _MINE
    + """
if not mine(ARGV[3]) then return 0 end
redis.call('DEL', KEYS[2])
return redis.call('XACK', KEYS[1], group, ARGV[3])
"""
)
_LEAVE = Script("""
local summary = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if not summary.err and #summary == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2]) end
return 1
""")


class RedisJobs:
    """A consumer of a stream of jobs: see Jobs; it also signals when entries come into an empty stream."""

    def __init__(
        self,
        redis: Redis,
        listening: Redis,
        stream: str,
        group: str,
        consumer: str,
        *,
        min_idle_ms: int,
        telemetry: Telemetry,
    ) -> None:
        """Create the consumer; *listening* waits inside Redis and so has a connection of its own, which allows for
        BLOCK_MS of silence; *consumer* is a name that no other process has or had.
        """
        self._redis = redis
        self._listening = listening
        self._stream, self._group, self._consumer = stream, group, consumer
        self._min_idle_ms = min_idle_ms
        self._telemetry = telemetry
        self.on_arrival: Callable[[], None] = lambda: None
        self._arrived: list[HandedJob] = []
        self._is_asked = asyncio.Event()
        self._is_known = False
        self._claims_from: bytes | None = b"0-0"
        self._client: int | None = None
        self._ring: asyncio.Task[None] | None = None
        self._is_stopping = False

    async def start(self) -> None:
        """Start listening."""
        self._ring = asyncio.create_task(self._listen(), name="jobs")

    async def silence(self) -> None:
        """Stop reading."""
        self._is_stopping = True
        if self._client is not None:
            with contextlib.suppress(RedisAway):
                await self._redis.execute([("CLIENT", "UNBLOCK", self._client)])
        if self._ring is not None:
            self._ring.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ring

    async def leave(self) -> None:
        """Remove this consumer from the group, unless it leaves entries behind: they would go with it."""
        with contextlib.suppress(RedisAway):
            await self._redis.execute([_LEAVE([self._stream], self._group, self._consumer)])

    def look_for_silent(self) -> None:
        """Claim what others were silent about with the next ``take``."""
        self._claims_from = self._claims_from or b"0-0"
        self.on_arrival()

    async def take(self, n: int) -> list[HandedJob]:
        """See Jobs; after it found nothing, the bell rings when there is something."""
        if self._is_stopping:
            return []
        await self._known()
        if self._arrived:
            await self.hold(())  # they may have waited for so long that they are another's
        claimed = await self._claim(n) if self._claims_from is not None else []
        n -= len(claimed)
        fresh, self._arrived = self._arrived[:n], self._arrived[n:]
        if len(fresh) < n and not self._is_asked.is_set():
            (reply,) = await self._asked([self._reading(n - len(fresh))])
            fresh += _entries(reply)
        if not claimed and not fresh:
            self._is_asked.set()
        return claimed + fresh

    async def keep(self, notes: Mapping[str, bytes]) -> None:
        """See Jobs."""
        await self._redis.execute(
            [
                _KEEP(self._keys(entry), self._group, self._consumer, entry, note, NOTE_MS)
                for entry, note in notes.items()
            ]
        )

    async def hold(self, entries: Sequence[str]) -> set[str]:
        """See Jobs."""
        asked = [*entries, *(each.entry for each in self._arrived)]
        if not asked:
            return set()
        (held,) = await self._redis.execute([_HOLD([self._stream], self._group, self._consumer, *asked)])
        gone = set(asked) - {entry.decode() for entry in held}
        self._arrived = [each for each in self._arrived if each.entry not in gone]
        return set(entries) - gone

    async def others(self, entries: Sequence[str]) -> dict[str, bytes | None]:
        """See Jobs."""
        asking = [each for entry in entries for each in self._asking(entry)]
        said = await self._redis.execute(asking)
        return {
            entry: note
            for entry, pending, note in zip(entries, said[::2], said[1::2], strict=True)
            if pending and pending[0][1].decode() != self._consumer
        }

    async def finish(self, entries: Sequence[str]) -> set[str]:
        """See Jobs."""
        replies = await self._redis.execute(
            [_FINISH(self._keys(entry), self._group, self._consumer, entry) for entry in entries]
        )
        return {entry for entry, done in zip(entries, replies, strict=True) if done}

    async def _known(self) -> None:
        """Make the group where it is missing: from the stream's first entry on, so that nothing is passed over."""
        if not self._is_known:
            await self._redis.execute([_OPEN([self._stream], self._group, IDLE_CONSUMER_MS)])
            self._is_known = True

    async def _asked(self, commands: Sequence[Command]) -> list[Reply]:
        try:
            return await self._redis.execute(commands)
        except RedisAway:
            self._is_known = False  # it may have lost the group
            raise

    async def _claim(self, n: int) -> list[HandedJob]:
        """Claim what was silent for long enough, a page of the pending list; each with its number of deliveries."""
        who = (self._stream, self._group, self._consumer)
        claim: Command = ("XAUTOCLAIM", *who, self._min_idle_ms, self._claims_from or b"0-0", "COUNT", n)
        ((cursor, claimed, *trimmed),) = await self._asked([claim])
        self._claims_from = None if cursor == b"0-0" else cursor
        if trimmed and trimmed[0]:
            self._telemetry.event(Event.NOTIFICATIONS_TRIMMED, entries=[entry.decode() for entry in trimmed[0]])
        found = [entry for entry in claimed if entry is not None and entry[1] is not None]
        asking = [each for entry, _ in found for each in self._asking(entry.decode())]
        said = await self._redis.execute(asking) if asking else []
        return [
            HandedJob(entry.decode(), _fields(fields), pending[0][3] if pending else 1, note)
            for (entry, fields), pending, note in zip(found, said[::2], said[1::2], strict=True)
        ]

    async def _listen(self) -> None:
        """Wait in Redis for the next entry, once somebody asked and there was none."""
        while True:
            await self._is_asked.wait()
            try:
                if self._client is None:
                    (self._client,) = await self._listening.execute([("CLIENT", "ID")])
                (reply,) = await self._listening.execute([self._reading(1, "BLOCK", BLOCK_MS)])
            except RedisAway:
                self._client = None
                self._is_known = False
                await asyncio.sleep(AWAY_S)
                self._is_asked.clear()
                self.on_arrival()
                continue
            if reply:
                self._arrived += _entries(reply)
                self._is_asked.clear()
                self.on_arrival()

    def _reading(self, n: int, *how: str | int) -> Command:
        return ("XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", n, *how, "STREAMS", self._stream, ">")

    def _asking(self, entry: str) -> tuple[Command, Command]:
        """Ask who has *entry*, and for its note."""
        return ("XPENDING", self._stream, self._group, entry, entry, 1), ("GET", self._keys(entry)[1])

    def _keys(self, entry: str) -> tuple[str, str]:
        return self._stream, f"waypost:job:{self._stream}:{self._group}:{entry}"


def _entries(reply: Reply) -> list[HandedJob]:
    return [HandedJob(entry.decode(), _fields(fields)) for entry, fields in reply[0][1]] if reply else []


def _fields(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
