"""Live connections: what a reader was told is all there is, once and in order, wherever the connection is cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from wsproto.frame_protocol import FrameProtocol, Opcode

from tests.contract.bench import APP, notification
from tests.contract.clock import StoppedClock
from tests.memory.feed import MemoryFeed
from tests.memory.store import MemoryStore
from tests.memory.work import MemoryWork
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import NotificationId, UserId, format_id
from waypost.entrypoints.live.connection import Connection, EventStream, Reader, WebSocket
from waypost.entrypoints.live.hub import NEWS_LIMIT, Hub
from waypost.entrypoints.live.settings import FeedSettings
from waypost.entrypoints.live.tickets import make_ticket, read_ticket
from waypost.entrypoints.rest import cursors
from waypost.ports.feed import Entry, FeedCounts, Mark, NewEntry, NewsQuery
from waypost.ports.live import Changed
from waypost.ports.work import NewNotification
from waypost.runtime.peers import NoPeers
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio
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

    async def news(self, queries: Sequence[NewsQuery], limit: int) -> list[list[Entry]]:
        """See Feed."""
        if self.is_away:
            raise Unavailable("away", ErrorCode.STORAGE_AWAY)
        self.is_read.set()
        await asyncio.sleep(0)  # others have their turn, as while a thread reads
        return await super().news(queries, limit)


class Bench:
    """A hub over feeds in memory."""

    def __init__(self) -> None:
        self.clock = StoppedClock()
        store = MemoryStore()
        self.work = MemoryWork(store, self.clock)
        self.feed = Feeds(store, self.clock)
        self.hub = self.another()
        self.place = 0

    def another(self, peers: NoPeers | None = None, **settings: Any) -> Hub:
        """A hub of another process, or with other settings."""
        return Hub(self.feed, peers or NoPeers(), self.clock, Silent(), FeedSettings(**settings), named)

    def join(self, kind: type[Connection] = WebSocket, since: str | None = None, cut_at: int | None = None) -> Wire:
        """Connect to the feed of ann."""
        wire = Wire(cut_at)
        place = None if since is None else cursors.place(since)
        wire.protocol = kind(self.hub, ANN, "127.0.0.1", place, ends_s=self.clock.monotonic() + 3600)
        self.hub.join(wire.protocol, wire)
        return wire

    async def bring(self, count: int = 1, *, tells: bool = True) -> list[str]:
        """Bring entries into the feed; return their ids."""
        made = [notification(self.clock.now()) for _ in range(count)]
        await self.work.accept([NewNotification(each) for each in made])
        entries = []
        for each in made:
            self.place += 1
            entries.append(NewEntry(each.app, each.user_id, each.id, 0, self.place, self.clock.now()))
        await self.feed.add(entries)
        if tells:
            self.hub.brought(entries)
        return [format_id(each.id) for each in made]


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    await made.hub.start()
    yield made
    await made.hub.stop()


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


async def test_who_connects_is_greeted_and_told_what_comes_then(bench: Bench) -> None:
    await bench.bring(2)
    wire = bench.join()
    await settled()
    (hello,) = said(wire.written)
    assert (hello["type"], hello["unread"], hello["unseen"]) == ("hello", 2, 2)
    third = await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == third


async def test_a_session_that_is_cut_at_any_byte_goes_on_without_a_gap_or_a_repeat(bench: Bench) -> None:
    """What comes while it is away, and while it is coming back, too."""
    whole = await session(bench, None)
    for cut_at in range(1, whole + 1):
        await session(bench, cut_at)


async def session(bench: Bench, cut_at: int | None) -> int:
    """Read, be cut after so many bytes, go on from what was read whole; return how many bytes were written before."""
    (counts,) = await bench.feed.counts([ANN])
    since = cursors.of_place(counts.newest)
    first = bench.join(since=since, cut_at=cut_at)
    await settled()
    known = await bench.bring()
    await settled()
    known += await bench.bring()
    await settled()
    written = len(first.written)
    read = said(first.written)
    first.close()
    known += await bench.bring()
    second = bench.join(since=read[-1]["cursor"] if read else since)
    known += await bench.bring()
    await settled()
    assert entries_in(read) + entries_in(said(second.written)) == known, cut_at
    second.close()
    await bench.feed.erase(*ANN)
    return written


async def test_who_names_a_place_of_before_the_store_was_moved_lists_the_feed(bench: Bench) -> None:
    await bench.bring()
    wire = bench.join(since=cursors.of_place(10**9))
    await settled()
    known = await bench.bring()
    await settled()
    assert [each["type"] for each in said(wire.written)] == ["hello", "fetch", "entry"]
    assert entries_in(said(wire.written)) == known


@pytest.mark.parametrize("place", [-(10**15), -1, 0, 1, 10**15])
async def test_a_cursor_holds_any_place(place: int) -> None:
    assert cursors.place(cursors.of_place(place)) == place


async def test_who_missed_too_much_is_told_to_list_the_feed(bench: Bench) -> None:
    await bench.bring(NEWS_LIMIT + 5, tells=False)
    wire = bench.join(since=cursors.of_place(0))
    await settled()
    last = await bench.bring()
    await settled()
    assert [each["type"] for each in said(wire.written)] == ["hello", "fetch", "entry"]
    assert entries_in(said(wire.written)) == last


class Told(NoPeers):
    """What one process tells another, where it arrives."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.is_lost = False

    def tell(self, topic: str, body: bytes = b"") -> None:
        """See Peers."""
        if not self.is_lost:
            {"feed.brought": self._hub._on_brought, "feed.changed": self._hub._on_changed}[topic](body)


async def test_a_message_that_is_lost_between_processes_is_made_up_for(bench: Bench) -> None:
    """The process that holds the connection misses a link of the chain, then another process brings entries."""
    here = bench.hub
    wire = bench.join()
    await settled()
    told = Told(here)
    bench.hub = bench.another(peers=told)
    known = await bench.bring(30)
    await settled()
    told.is_lost = True
    known += await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == known[:-1]
    told.is_lost = False
    await bench.hub.ping()
    await settled()
    assert entries_in(said(wire.written)) == known
    told.is_lost = True
    known += await bench.bring()
    told.is_lost = False
    known += await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == known
    bench.hub = bench.another(peers=Told(here))
    known += await bench.bring(3)
    await settled()
    assert entries_in(said(wire.written)) == known
    bench.hub.changed(Changed(*ANN, Mark.READ, FeedCounts(3, 2), tuple([NotificationId(bytes(16))] * 200)))
    assert said(wire.written)[-1]["ids"] == []
    bench.hub = here


async def test_a_slow_reader_is_told_the_rest_when_it_has_room(bench: Bench) -> None:
    wire = bench.join()
    await settled()
    wire.protocol.pause_writing()
    missed = await bench.bring(3)
    await settled()
    assert entries_in(said(wire.written)) == []
    wire.protocol.resume_writing()
    await settled()
    assert entries_in(said(wire.written)) == missed


async def test_who_reads_nothing_is_sent_no_pongs_and_is_cut_off_where_it_does_not_go(bench: Bench) -> None:
    for kind in (WebSocket, EventStream):
        wire = bench.join(kind)
        await settled()
        wire.is_full = True
        wire.protocol.pause_writing()
        written = len(wire.written)
        if kind is WebSocket:
            wire.protocol.data_received(bytes(FrameProtocol(client=True, extensions=[]).ping(b"more")))
        assert len(wire.written) == written
        wire.protocol.ends_s = bench.clock.monotonic()
        await bench.hub.ping()
        assert wire.is_closing() and not wire.aborted
        await bench.hub.ping()
        assert wire.aborted
    bench.hub = bench.another(address_connections_limit=1)
    bench.hub.check_room("127.0.0.1")


async def test_one_that_leaves_while_its_feed_is_read_holds_up_nobody(bench: Bench) -> None:
    await bench.bring(3, tells=False)
    wires = [bench.join(since=cursors.of_place(0)) for _ in range(3)]
    await bench.feed.is_read.wait()
    wires[0].close()
    await settled()
    known = await bench.bring()
    await settled()
    for wire in wires[1:]:
        assert len(entries_in(said(wire.written))) == 4
        assert entries_in(said(wire.written))[-1:] == known


async def test_an_entry_that_cannot_be_shown_has_clients_list_the_feed(bench: Bench) -> None:
    def view(entry: Entry) -> str:
        if entry.place == 2:
            raise ValueError(entry)
        return named(entry)

    bench.hub._view = view
    wire = bench.join()
    await settled()
    await bench.bring(3)
    await settled()
    assert [each["type"] for each in said(wire.written)] == ["hello", "entry", "fetch", "entry"]


async def test_who_never_joined_cannot_leave(bench: Bench) -> None:
    bench.hub = bench.another(address_connections_limit=1)
    wire = bench.join()
    bench.hub.left(EventStream(bench.hub, ANN, "127.0.0.1", None, 0))
    with pytest.raises(Unavailable):
        bench.hub.check_room("127.0.0.1")
    wire.close()
    bench.hub.check_room("127.0.0.1")


async def test_news_come_when_the_store_is_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waypost.entrypoints.live.hub.AGAIN_S", 0)
    bench.feed.is_away = True
    wire = bench.join()
    await settled()
    bench.feed.is_away = False
    made = await bench.bring()
    await settled()
    assert entries_in(said(wire.written)) == made


async def test_other_devices_hear_of_marks(bench: Bench) -> None:
    wire = bench.join()
    await settled()
    one = NotificationId(bytes(range(16)))
    bench.hub.changed(Changed(*ANN, Mark.READ, FeedCounts(3, 2), (one,)))
    assert said(wire.written)[-1] == {
        "type": "marked",
        "mark": "read",
        "ids": [format_id(one)],
        "unread": 3,
        "unseen": 2,
    }


async def test_an_event_stream_says_the_same_with_ids_to_go_on_from(bench: Bench) -> None:
    wire = bench.join(EventStream)
    await settled()
    (made,) = await bench.bring()
    await settled()
    hello, entry, rest = wire.written.decode().split("\n\n")
    assert hello.startswith("id: ") and rest == ""
    head, data = entry.split("\ndata: ")
    cursor = head.removeprefix("id: ")
    assert msgspec.json.decode(data) == {"type": "entry", "cursor": cursor, "entry": made, "unread": 1, "unseen": 1}


async def test_the_oldest_connection_of_a_user_makes_room(bench: Bench) -> None:
    bench.hub = bench.another(user_connections_limit=2)
    wires = [bench.join() for _ in range(4)]
    assert [each.is_closing() for each in wires] == [True, True, False, False]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"connections_limit": 1}, ErrorCode.STORAGE_BUSY),
        ({"address_connections_limit": 1}, ErrorCode.RATE_LIMITED),
    ],
)
async def test_there_is_room_for_so_many(bench: Bench, settings: Json, code: ErrorCode) -> None:
    bench.hub = bench.another(**settings)
    bench.hub.check_room("127.0.0.1")
    wire = bench.join()
    with pytest.raises(Unavailable) as refused:
        bench.hub.check_room("127.0.0.1")
    assert refused.value.code is code
    wire.close()
    bench.hub.check_room("127.0.0.1")


async def test_who_answers_no_ping_is_gone_and_who_is_over_age_is_told(bench: Bench) -> None:
    silent, old = bench.join(), bench.join()
    old.protocol.ends_s = bench.clock.monotonic()
    for _ in range(2):
        await bench.hub.ping()
    assert (silent.aborted, old.aborted, old.is_closing()) == (True, False, True)


@pytest.mark.parametrize(
    ("frame", "ends"),
    [
        pytest.param(FrameProtocol(client=True, extensions=[]).pong(b""), False, id="a pong"),
        pytest.param(FrameProtocol(client=True, extensions=[]).close(1000, ""), True, id="a close"),
        pytest.param(b"\x81\x02hi", True, id="a frame that is not masked"),
        pytest.param(b"\x83\x80abcd", True, id="an unknown opcode"),
        pytest.param(b"\x82\xff\x00\x00\x00\x00\x7f\xff\xff\xffabcd", True, id="a frame of two gigabytes"),
    ],
)
async def test_what_a_client_may_say(bench: Bench, frame: bytes, ends: bool) -> None:
    for step in (len(frame), 1):
        wire = bench.join()
        for at in range(0, len(frame), step):
            wire.protocol.data_received(frame[at : at + step])
        assert wire.is_closing() is ends


async def test_a_hub_that_stops_says_goodbye(bench: Bench) -> None:
    wire = bench.join()
    await settled()
    await bench.hub.stop()
    assert [each["type"] for each in said(wire.written)] == ["hello", "reconnect"] and wire.is_closing()
    with pytest.raises(Unavailable):
        bench.hub.check_room("127.0.0.1")


async def test_a_ticket_opens_one_feed_for_a_while_and_no_other_installations() -> None:
    clock = StoppedClock()
    ticket = make_ticket(b"k" * 32, ANN, clock.advance(1_000))
    assert read_ticket(b"k" * 32, ticket, StoppedClock().now()) == ANN
    assert read_ticket(b"k" * 32, ticket, clock.now()) is None
    assert read_ticket(b"l" * 32, ticket, StoppedClock().now()) is None
    for broken in ("", "a", ticket[:-1], ticket[1:], "é" * 30):
        assert read_ticket(b"k" * 32, broken, StoppedClock().now()) is None, broken
