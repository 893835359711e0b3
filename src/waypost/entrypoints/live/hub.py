"""The hub of one process: who follows which feed here, and what is new for them.

Entries are told by the process that brought them into feeds, as a chain: whoever hears a link that does not follow the
one before has missed something, and reads from the feed, as do those who just came. So nothing is told twice or not at
all, whatever is lost between processes: a connection goes on from the place that it was told of last.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.entrypoints.live.chain import Brought, Chain
from waypost.entrypoints.live.connection import AWAY, NORMAL, RESTARTS, Connection, Reader
from waypost.entrypoints.live.messages import LiveMessage
from waypost.entrypoints.live.news import News
from waypost.entrypoints.live.outward import Outward
from waypost.entrypoints.live.settings import FeedSettings
from waypost.ports.clock import Clock
from waypost.ports.feed import Entry, Feed, NewEntry, Saying
from waypost.ports.live import Changed
from waypost.telemetry import Metric, Telemetry

QUEUE_LIMIT_BYTES: Final = 64 * 1024
"""The most that waits in memory for a client that is behind; it is read from the feed later."""
SLICE: Final = 500
"""Connections that are pinged in one turn of the loop."""
NAMED_LIMIT: Final = 100
"""The most entries that a change names."""
DRAIN_S: Final = 2.0
"""Seconds over which connections are told to go, so that not all come back at once."""


class Hub:
    """The live connections of one process (fulfils ports.live.Live and ports.lifecycle.Lifecycle)."""

    def __init__(
        self,
        feed: Feed,
        outward: Outward,
        clock: Clock,
        telemetry: Telemetry,
        settings: FeedSettings,
        view: Callable[[Entry], Any],
    ) -> None:
        """Create it; *view* makes what clients see of an entry."""
        self._outward = outward
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._news = News(feed, telemetry, view, self._of, outward.arrived)
        self._readers: dict[Reader, Connection | tuple[Connection, ...]] = {}
        self._addresses: Counter[str] = Counter()
        self._count = 0
        self._chain = Chain()
        """What this process told itself."""
        self._heard = 0
        """The place of the last entry that it heard of, from whomever."""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False

    def say_by(self, say: Saying) -> None:
        """Put the words of templates into what is told by *say*."""
        self._news.say = say

    async def start(self) -> None:
        """Listen to other processes, and begin to tell."""
        await self._outward.start(self)
        self._tasks = [asyncio.create_task(each) for each in (self._news.read_on(), self._ping_on())]

    async def stop(self) -> None:
        """Tell everybody to come back later, spread over a moment; then close."""
        self._is_stopping = True
        everybody = self._everybody()
        for n, each in enumerate(everybody):
            each.tell(LiveMessage("reconnect", within_s=DRAIN_S))
            each.end(RESTARTS, "restarting")
            if n % SLICE == SLICE - 1:
                await asyncio.sleep(DRAIN_S * SLICE / len(everybody))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._outward.stop()

    def check_room(self, address: str) -> None:
        """Raise Unavailable where no more connections are taken, or none from *address*."""
        if self._is_stopping:
            raise Unavailable("shutting down; another worker or a later try will take it", ErrorCode.SHUTTING_DOWN)
        if self._count >= self._settings.connections_limit:
            raise Unavailable("no more live connections have room here", ErrorCode.STORAGE_BUSY, 5)
        if self._addresses[address] >= self._settings.address_connections_limit:
            raise Unavailable("too many live connections from one address", ErrorCode.RATE_LIMITED, 5)

    def join(self, connection: Connection, transport: asyncio.Transport) -> None:
        """Count *connection* in, and tell it what it has missed."""
        connection.transport = transport
        transport.set_write_buffer_limits(high=QUEUE_LIMIT_BYTES)
        there = self._readers.get(connection.reader)
        if there is None:
            self._readers[connection.reader] = connection
        else:
            others = there if isinstance(there, tuple) else (there,)
            self._readers[connection.reader] = (*others, connection)
            stay = [each for each in others if not each.transport.is_closing()]
            if len(stay) >= self._settings.user_connections_limit:
                stay[0].end(AWAY, "too many connections of one user")
        self._addresses[connection.address] += 1
        self._count += 1
        self._telemetry.gauge(Metric.LIVE_CONNECTIONS, self._count)
        self.read_for(connection)

    def left(self, connection: Connection) -> None:
        """Forget a connection, if it had joined."""
        there = self._of(connection.reader)
        rest = tuple(each for each in there if each is not connection)
        if len(rest) == len(there):
            return
        if rest:
            self._readers[connection.reader] = rest if len(rest) > 1 else rest[0]
        else:
            del self._readers[connection.reader]
            self._outward.departed(connection.reader)
        self._addresses[connection.address] -= 1
        if not self._addresses[connection.address]:
            del self._addresses[connection.address]
        self._count -= 1
        self._telemetry.gauge(Metric.LIVE_CONNECTIONS, self._count)

    def read_for(self, connection: Connection) -> None:
        """Read what *connection* has missed."""
        self._news.read_for(connection)

    async def ping(self) -> None:
        """Ping everybody in turn; who did not answer the last time, or is over age, is closed."""
        now_s = self._clock.monotonic()
        await self._outward.repeat()
        for n, each in enumerate(self._everybody()):
            _look_after(each, now_s)
            if n % SLICE == SLICE - 1:
                await asyncio.sleep(0)

    async def brought(self, entries: Sequence[NewEntry]) -> None:
        """See Live."""
        for link in self._chain.links(entries):
            self.hear(link)
        await self._outward.brought(entries)

    async def changed(self, change: Changed) -> None:
        """See Live."""
        if len(change.ids) > NAMED_LIMIT:
            change = msgspec.structs.replace(change, ids=())
        self.show(change)
        await self._outward.changed(change)

    def hear(self, link: Brought) -> None:
        """Note what is new for those who are here; after a missing link, all of them read for themselves."""
        if not link.entries and link.until <= self._heard:
            return
        if link.after == 0 or link.after != self._heard:
            self.read_for_all()
        self._heard = link.until
        for app, user_id, notification_id, _ in link.entries:
            reader = Reader(app, user_id)
            if reader in self._readers:
                self._news.brought(reader, notification_id)

    def show(self, change: Changed) -> None:
        """Tell those who are here of a change."""
        if Reader(change.app, change.user_id) in self._readers:
            self._news.changed(change)

    def read_for_all(self) -> None:
        """Read for everybody: something may have been missed."""
        for each in self._everybody():
            self.read_for(each)

    async def _ping_on(self) -> None:
        while True:
            await asyncio.sleep(self._settings.ping_s)
            try:
                await self.ping()
            except Exception as surprise:  # noqa: BLE001 - nobody is pinged any more where this task ends
                self._news.report(surprise)

    def _of(self, reader: Reader) -> tuple[Connection, ...]:
        there = self._readers.get(reader, ())
        return there if isinstance(there, tuple) else (there,)

    def _everybody(self) -> list[Connection]:
        return [each for reader in self._readers for each in self._of(reader)]


def _look_after(connection: Connection, now_s: float) -> None:
    if connection.transport.is_closing() or not connection.is_alive:  # one that closes has not read what it was told
        connection.transport.abort()
    elif now_s >= connection.ends_s:
        connection.end(NORMAL, "over age: connect again")
    else:
        connection.is_alive = False
        connection.ping()
