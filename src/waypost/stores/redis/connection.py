"""One connection to one Redis server: commands are written as they come, replies matched to them in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, cast

import hiredis

from waypost.stores.redis.commands import Command, RedisAway, Reply

PENDING_LIMIT: Final = 50_000
"""The most commands that may wait for their replies; past it nothing more is taken."""
UNSENT_LIMIT_BYTES: Final = 8 * 1024 * 1024
"""The most bytes that the system has not taken yet; past it nothing more is taken either."""


class _Pipeline:
    """The commands that were sent together, and the replies so far."""

    __slots__ = ("deadline", "replies", "size", "whole")

    def __init__(self, size: int, deadline: float, whole: asyncio.Future[list[Reply]]) -> None:
        self.size = size
        self.deadline = deadline
        self.whole = whole
        self.replies: list[Reply] = []


class RedisConnection(asyncio.Protocol):
    """A connection that speaks RESP2. A server that is late is given up, with all that waits: replies have no names."""

    def __init__(self, timeout_s: float) -> None:
        self.on_lost: Callable[[str], None] | None = None
        """Called with the reason, once, when the connection is lost."""
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader()
        self._waiting: deque[_Pipeline] = deque()
        self._pending = 0
        self._is_full = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._lost_by = "the connection was closed"

    @property
    def is_open(self) -> bool:
        """Whether anything can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, commands: Sequence[Command]) -> asyncio.Future[list[Reply]]:
        """Write *commands*; return a future of all their replies, error replies as values, or RedisAway."""
        if self._transport is None or self._transport.is_closing():
            raise RedisAway(f"Redis is away: {self._lost_by}")
        if self._is_full or self._pending + len(commands) > PENDING_LIMIT:
            raise RedisAway("too much waits for Redis already")
        packed = b"".join(
            [hiredis.pack_command(command) for command in commands]  # type: ignore[arg-type]  # its stub has one part
        )
        whole: asyncio.Future[list[Reply]] = self._loop.create_future()
        self._waiting.append(_Pipeline(len(commands), self._loop.time() + self._timeout_s, whole))
        self._pending += len(commands)
        self._transport.write(packed)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._look_at_the_time)
        return whole

    def abort(self, why: str) -> None:
        """Abort the connection; what waits ends with RedisAway."""
        self._lost_by = why
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._transport.set_write_buffer_limits(high=UNSENT_LIMIT_BYTES)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        reader, waiting = self._reader, self._waiting
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                first = waiting[0]
                first.replies.append(reply)
                if len(first.replies) == first.size:
                    waiting.popleft()
                    self._pending -= first.size
                    if not first.whole.done():
                        first.whole.set_result(first.replies)
        except (hiredis.ProtocolError, IndexError):
            self.abort("what answers is no Redis")

    def pause_writing(self) -> None:
        """See asyncio.BaseProtocol."""
        self._is_full = True

    def resume_writing(self) -> None:
        """See asyncio.BaseProtocol."""
        self._is_full = False

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BaseProtocol."""
        if self._timer is not None:
            self._timer.cancel()
        for pipeline in self._waiting:
            if not pipeline.whole.done():
                pipeline.whole.set_exception(RedisAway(f"Redis is away: {self._lost_by}"))
        self._waiting.clear()
        if self.on_lost is not None:
            self.on_lost(self._lost_by)

    def _look_at_the_time(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        deadline = self._waiting[0].deadline
        if deadline <= self._loop.time():
            self.abort("no answer in time")
        else:
            self._timer = self._loop.call_at(deadline, self._look_at_the_time)
