"""Live connections one by one: who is slow, silent, over age or too many, and what a client may say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from wsproto.frame_protocol import FrameProtocol

from tests.contract.clock import StoppedClock
from tests.unit.entrypoints.live_bench import ANN, Bench, Json, entries_in, said, settled
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.entrypoints.live.connection import EventStream, WebSocket
from waypost.entrypoints.live.tickets import make_ticket, read_ticket
from waypost.entrypoints.rest import cursors

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    await made.hub.start()
    yield made
    await made.hub.stop()


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


async def test_who_never_joined_cannot_leave(bench: Bench) -> None:
    bench.hub = bench.another(address_connections_limit=1)
    wire = bench.join()
    bench.hub.left(EventStream(bench.hub, ANN, "127.0.0.1", None, 0))
    with pytest.raises(Unavailable):
        bench.hub.check_room("127.0.0.1")
    wire.close()
    bench.hub.check_room("127.0.0.1")


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
