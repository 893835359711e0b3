"""The hub of one process: who follows which feed here, and what is new for them.

Entries are told by the process that brought them into feeds, as a chain: whoever hears a link that does not follow the
one before has missed something, and reads from the feed, as do those who just came. So nothing is told twice or not at
all, whatever is lost between processes: a connection goes on from the place that it was told of last.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import AppId, NotificationId, UserId, format_id
from waypost.entrypoints.live.connection import AWAY, BEGINS_NOW, NORMAL, RESTARTS, Connection, Reader
from waypost.entrypoints.live.messages import LiveMessage
from waypost.entrypoints.live.settings import FeedSettings
from waypost.ports.clock import Clock
from waypost.ports.feed import Entry, Feed, FeedCounts, NewEntry, NewsQuery
from waypost.ports.live import Changed
from waypost.ports.peers import Peers
from waypost.telemetry import Event, Metric, Telemetry

QUEUE_LIMIT_BYTES: Final = 64 * 1024
"""The most that waits in memory for a client that is behind; it is read from the feed later."""
NEWS_LIMIT: Final = 100
"""The most entries that a connection catches up with; a client that misses more lists the feed."""
READERS_AT_ONCE: Final = 100
SLICE: Final = 500
"""Connections that are pinged in one turn of the loop."""
MESSAGE_BYTES: Final = 5_000
"""The most bytes of a message to other processes, whatever carries it."""
NAMED_LIMIT: Final = 100
"""The most entries that a change names to other processes."""
_BROUGHT: Final = "feed.brought"
_CHANGED: Final = "feed.changed"
AGAIN_S: Final = 0.5
DRAIN_S: Final = 2.0
"""Seconds over which connections are told to go, so that not all come back at once."""


class Brought(Struct, frozen=True, array_like=True):
    """A link of the chain of entries: it follows the link that ended at the place *after*, 0 where that is unknown.

    One without entries repeats where the chain ends.
    """

    after: int
    until: int
    entries: tuple[tuple[AppId, UserId, NotificationId, int], ...]


class Hub:
    """The live connections of one process (fulfils ports.live.Live and ports.lifecycle.Lifecycle)."""

    def __init__(
        self,
        feed: Feed,
        peers: Peers,
        clock: Clock,
        telemetry: Telemetry,
        settings: FeedSettings,
        view: Callable[[Entry], Any],
    ) -> None:
        """Create it; *view* makes what clients see of an entry."""
        self._feed = feed
        self._peers = peers
        self._clock = clock
        self._telemetry = telemetry
        self._settings = settings
        self._view = view
        self._readers: dict[Reader, Connection | tuple[Connection, ...]] = {}
        self._addresses: Counter[str] = Counter()
        self._count = 0
        self._said = 0
        """The place of the last entry that this process told of."""
        self._heard = 0
        """The place of the last entry that it heard of, from whomever."""
        self._news: deque[tuple[Reader, NotificationId]] = deque()
        """What was brought for those who are here, and is still to be read."""
        self._behind: deque[Connection] = deque()
        """Connections whose news are to be read."""
        self._woken = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False

    async def start(self) -> None:
        """Listen to other processes, and begin to tell."""
        self._peers.on(_BROUGHT, self._on_brought)
        self._peers.on(_CHANGED, self._on_changed)
        self._tasks = [asyncio.create_task(each) for each in (self._read_on(), self._ping_on())]

    async def stop(self) -> None:
        """Tell everybody to come back later, spread over a moment; then close."""
        self._is_stopping = True
        everybody = list(self._everybody())
        for n, each in enumerate(everybody):
            each.tell(LiveMessage("reconnect", within_s=DRAIN_S))
            each.end(RESTARTS, "restarting")
            if n % SLICE == SLICE - 1:
                await asyncio.sleep(DRAIN_S * SLICE / len(everybody))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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
        self._addresses[connection.address] -= 1
        if not self._addresses[connection.address]:
            del self._addresses[connection.address]
        self._count -= 1
        self._telemetry.gauge(Metric.LIVE_CONNECTIONS, self._count)

    def read_for(self, connection: Connection) -> None:
        """Read what *connection* has missed."""
        connection.is_missing = True
        if not connection.is_reading:
            connection.is_reading = True
            self._behind.append(connection)
            self._woken.set()

    async def ping(self) -> None:
        """Ping everybody in turn; who did not answer the last time, or is over age, is closed."""
        now_s = self._clock.monotonic()
        if self._said:  # a link that was lost is noticed by this one
            self._peers.tell(_BROUGHT, _encode(Brought(self._said, self._said, ())))
        for n, each in enumerate(list(self._everybody())):
            _look_after(each, now_s)
            if n % SLICE == SLICE - 1:
                await asyncio.sleep(0)

    def brought(self, entries: Sequence[NewEntry]) -> None:
        """See Live."""
        named = [(each.app, each.user_id, each.notification_id, each.place) for each in entries]
        for part in _parts(named):
            link = Brought(self._said, part[-1][3], part)
            self._said = link.until
            self._hear(link)
            self._peers.tell(_BROUGHT, _encode(link))

    def changed(self, change: Changed) -> None:
        """See Live."""
        self._show(change)
        if len(change.ids) > NAMED_LIMIT:
            change = msgspec.structs.replace(change, ids=())
        self._peers.tell(_CHANGED, _encode(change))

    def _on_brought(self, body: bytes) -> None:
        self._hear(_brought(body))

    def _on_changed(self, body: bytes) -> None:
        self._show(_changed(body))

    def _hear(self, link: Brought) -> None:
        """Note what is new for those who are here; after a missing link, all of them read for themselves."""
        if not link.entries and link.until <= self._heard:
            return
        if link.after == 0 or link.after != self._heard:
            for each in self._everybody():
                self.read_for(each)
        self._heard = link.until
        for app, user_id, notification_id, _ in link.entries:
            reader = Reader(app, user_id)
            if reader in self._readers:
                self._news.append((reader, notification_id))
                self._woken.set()

    def _show(self, change: Changed) -> None:
        connections = self._of(Reader(change.app, change.user_id))
        if connections:
            counts = change.counts
            ids = [format_id(each) for each in change.ids]
            message = LiveMessage("marked", mark=change.mark, ids=ids, unread=counts.unread, unseen=counts.unseen)
            for each in connections:
                if each.is_greeted and not each.is_paused:
                    each.tell(message)

    async def _read_on(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                while self._news or self._behind:
                    await self._tell_news()
                    await self._catch_up()
            except Unavailable:
                await asyncio.sleep(AGAIN_S)  # the store reports its outage itself
                self._woken.set()
            except Exception as surprise:  # noqa: BLE001 - nobody is told anything any more where this task ends
                self._report(surprise)
                await asyncio.sleep(AGAIN_S)
                self._woken.set()

    async def _tell_news(self) -> None:
        """Read what was brought, and tell those who follow it."""
        news = [self._news.popleft() for _ in range(min(len(self._news), READERS_AT_ONCE))]
        if not news:
            return
        readers = list(dict.fromkeys(reader for reader, _ in news))
        try:
            found = await self._feed.entries([each[1] for each in news])
            counts = dict(zip(readers, await self._feed.counts(readers), strict=True))
        except BaseException:
            for reader, _ in news:
                for each in self._of(reader):
                    self.read_for(each)
            raise
        entries = {each.record.notification.id: each for each in found}
        for reader, notification_id in news:
            entry = entries.get(notification_id)
            if entry is not None:
                message = self._message(entry, counts[reader])
                for each in self._of(reader):
                    each.take(entry.place, message)

    async def _catch_up(self) -> None:
        """Read for connections what they miss, and tell them; who misses too much is told to list the feed."""
        asking = [self._behind.popleft() for _ in range(min(len(self._behind), READERS_AT_ONCE))]
        for each in asking:
            each.is_reading = not each.transport.is_closing() and not each.is_paused
            each.is_missing = not each.is_reading
        asking = [each for each in asking if each.is_reading]
        if not asking:
            return
        try:
            await self._greet([each for each in asking if not each.is_greeted])
            queries = [NewsQuery(*each.reader, each.place) for each in asking]
            found = await self._feed.news(queries, NEWS_LIMIT + 1)
            readers = [each.reader for each, entries in zip(asking, found, strict=True) if entries]
            counts = dict(zip(readers, await self._feed.counts(readers), strict=True)) if readers else {}
        except BaseException:
            for each in asking:
                each.is_missing = True
            self._behind.extend(asking)
            raise
        for each, entries in zip(asking, found, strict=True):
            self._tell_missed(each, entries, counts.get(each.reader, FeedCounts()))

    async def _greet(self, arrived: Sequence[Connection]) -> None:
        """Say how many are unread; who named no place begins at the newest entry.

        So does who names a place that there is not yet, which is of before the store was moved or restored: they are
        told to list the feed.
        """
        if not arrived:
            return
        for each, counts in zip(arrived, await self._feed.counts([each.reader for each in arrived]), strict=True):
            each.is_greeted = True
            is_unknown = each.place > counts.newest
            if is_unknown or each.place == BEGINS_NOW:
                each.place = counts.newest
            each.tell(_greeting(each.place, counts))
            if is_unknown:
                each.tell(LiveMessage("fetch", each.place))

    def _tell_missed(self, connection: Connection, entries: Sequence[Entry], counts: FeedCounts) -> None:
        connection.is_reading = False
        if len(entries) > NEWS_LIMIT:
            connection.place = max(entries[-1].place, counts.newest)  # the list that it fetches has them all
            connection.tell(LiveMessage("fetch", connection.place))
            connection.is_missing = True
        for entry in () if len(entries) > NEWS_LIMIT else entries:
            if connection.is_paused:
                connection.is_missing = True
                break
            connection.place = entry.place
            connection.tell(self._message(entry, counts))
        if connection.is_missing and not connection.is_paused:
            self.read_for(connection)

    def _message(self, entry: Entry, counts: FeedCounts) -> LiveMessage:
        """Make the message that shows *entry*; one that cannot be shown by itself has the client list the feed."""
        try:
            seen = self._view(entry)
        except Exception as surprise:  # noqa: BLE001 - what is wrong with one entry must not keep others back
            self._report(surprise)
            return LiveMessage("fetch", entry.place)
        return LiveMessage("entry", entry.place, entry=seen, unread=counts.unread, unseen=counts.unseen)

    async def _ping_on(self) -> None:
        while True:
            await asyncio.sleep(self._settings.ping_s)
            try:
                await self.ping()
            except Exception as surprise:  # noqa: BLE001 - nobody is pinged any more where this task ends
                self._report(surprise)

    def _report(self, surprise: Exception) -> None:
        self._telemetry.event(Event.STAGE_FAILED, stage="live", error=type(surprise).__name__)

    def _of(self, reader: Reader) -> tuple[Connection, ...]:
        there = self._readers.get(reader, ())
        return there if isinstance(there, tuple) else (there,)

    def _everybody(self) -> Iterable[Connection]:
        return [each for reader in self._readers for each in self._of(reader)]


def _look_after(connection: Connection, now_s: float) -> None:
    if connection.transport.is_closing() or not connection.is_alive:  # one that closes has not read what it was told
        connection.transport.abort()
    elif now_s >= connection.ends_s:
        connection.end(NORMAL, "over age: connect again")
    else:
        connection.is_alive = False
        connection.ping()


def _greeting(place: int, counts: FeedCounts) -> LiveMessage:
    return LiveMessage("hello", place, unread=counts.unread, unseen=counts.unseen)


def _parts(
    entries: Sequence[tuple[AppId, UserId, NotificationId, int]],
) -> Iterable[tuple[tuple[AppId, UserId, NotificationId, int], ...]]:
    """Divide *entries* so that each part fits into one message."""
    part: list[tuple[AppId, UserId, NotificationId, int]] = []
    size = 0
    for entry in entries:
        size += len(_encode(entry))
        if part and size > MESSAGE_BYTES:
            yield tuple(part)
            part, size = [], len(_encode(entry))
        part.append(entry)
    if part:
        yield tuple(part)


_encode = msgspec.msgpack.Encoder().encode
_brought = msgspec.msgpack.Decoder(Brought).decode
_changed = msgspec.msgpack.Decoder(Changed).decode
