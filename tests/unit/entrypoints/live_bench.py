"""A hub over feeds in memory, and the clients that are connected to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from wsproto.frame_protocol import FrameProtocol, Opcode

from tests.contract.bench import APP, notification
from tests.contract.clock import StoppedClock
from tests.memory.feed import MemoryFeed
from tests.memory.store import MemoryStore
from tests.memory.work import MemoryWork
from waypost.domain.content import Content
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import AppId, UserId, format_id, parse_id
from waypost.entrypoints.live.connection import Connection, Reader, WebSocket
from waypost.entrypoints.live.hub import Hub
from waypost.entrypoints.live.outward import Broadcast, Outward
from waypost.entrypoints.live.settings import FeedSettings
from waypost.entrypoints.rest import cursors
from waypost.ports.feed import Entry, FeedCounts, Mark, Marking, NewEntry, NewsQuery
from waypost.ports.live import Changed
from waypost.ports.work import NewNotification
from waypost.runtime.peers import NoPeers
from waypost.telemetry import Silent

ANN = Reader(APP, UserId("ann"))
Json = dict[str, Any]


class Wire(asyncio.Transport):
    """A connection's other end: keeps what was written, up to where it is cut."""

    def __init__(self, cut_at: int | None = None) -> None:
        super().__init__()
        self.written = bytearray()
        self.cut_at = cut_at
        self.protocol: Connection
        self.aborted = False
        self.is_full = False
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take it, or as much as arrives before the cut; RuntimeError after the end, as uvloop's."""
        if self._closing:
            raise RuntimeError("the handler is closed")
        self.written += data
        if self.cut_at is not None and len(self.written) >= self.cut_at:
            del self.written[self.cut_at :]
            self.close()

    def close(self) -> None:
        """End, once the client has read what was written."""
        if not self._closing:
            self._closing = True
            if not self.is_full:
                self.protocol.connection_lost(None)

    def abort(self) -> None:
        """End at once."""
        self.aborted = True
        if self.is_full:
            self.is_full, self._closing = False, False
        self.close()

    def is_closing(self) -> bool:
        """Whether it has ended."""
        return self._closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Have no buffer."""


class Feeds(MemoryFeed):
    """Feeds that can be away for a while, and tell what was asked."""

    is_away = False

    def __init__(self, store: MemoryStore, clock: StoppedClock) -> None:
        super().__init__(store, clock)
        self.is_read = asyncio.Event()

    async def counts(self, users: Sequence[tuple[AppId, UserId]]) -> list[FeedCounts]:
        """See Feed."""
        if self.is_away:
            raise Unavailable("away", ErrorCode.STORAGE_AWAY)
        return await super().counts(users)

    async def news(self, queries: Sequence[NewsQuery], limit: int) -> list[list[Entry]]:
        """See Feed."""
        if self.is_away:
            raise Unavailable("away", ErrorCode.STORAGE_AWAY)
        self.is_read.set()
        await asyncio.sleep(0)  # others have their turn, as while a thread reads
        return await super().news(queries, limit)


class Bench:
    """A hub over feeds in memory."""

    def __init__(self, outward: Outward | None = None) -> None:
        self.clock = StoppedClock()
        store = MemoryStore()
        self.work = MemoryWork(store, self.clock)
        self.feed = Feeds(store, self.clock)
        self.hub = self.another(outward)
        self.place = 0

    def another(self, outward: Outward | None = None, **settings: Any) -> Hub:
        """A hub of another process, or with other settings."""
        return Hub(self.feed, outward or Broadcast(NoPeers()), self.clock, Silent(), FeedSettings(**settings), named)

    def join(self, kind: type[Connection] = WebSocket, since: str | None = None, cut_at: int | None = None) -> Wire:
        """Connect to the feed of ann."""
        wire = Wire(cut_at)
        place = None if since is None else cursors.place(since)
        wire.protocol = kind(self.hub, ANN, "127.0.0.1", place, ends_s=self.clock.monotonic() + 3600)
        self.hub.join(wire.protocol, wire)
        return wire

    async def mark(self, mark: Mark, *ids: str) -> None:
        """Mark entries of ann, and tell."""
        await self.feed.mark(Marking(*ANN, mark, self.clock.now(), tuple(map(parse_id, ids))))
        await self.hub.changed(Changed(*ANN, mark, tuple(map(parse_id, ids))))

    async def bring(self, count: int = 1, *, tells: bool = True, content: Content | None = None) -> list[str]:
        """Bring entries into the feed; return their ids."""
        made = [notification(self.clock.now()) for _ in range(count)]
        made = made if content is None else [replace(each, content=content) for each in made]
        await self.work.accept([NewNotification(each) for each in made])
        entries = []
        for each in made:
            self.place += 1
            entries.append(NewEntry(each.app, each.user_id, each.id, 0, self.place, self.clock.now()))
        await self.feed.add(entries)
        if tells:
            await self.hub.brought(entries)
        return [format_id(each.id) for each in made]


def named(entry: Entry) -> str:
    """What a client sees of an entry here."""
    return format_id(entry.record.notification.id)


def said(written: bytes | bytearray) -> list[Json]:
    """What a client of a web socket has read whole."""
    reads = FrameProtocol(client=True, extensions=[])
    reads.receive_bytes(bytes(written))
    texts = [
        frame.payload for frame in reads.received_frames() if frame.opcode is Opcode.TEXT and frame.message_finished
    ]
    return [msgspec.json.decode(str(each)) for each in texts]


async def settled() -> None:
    """Let the hub do what it can do now."""
    for _ in range(50):
        await asyncio.sleep(0)


def entries_in(messages: Sequence[Json]) -> list[str]:
    return [str(each["entry"]) for each in messages if each["type"] == "entry"]
