"""The pool against a server that does each thing at the wrong moment, over TLS on loopback."""

import asyncio
from typing import Any

import pytest
from hyperframe.frame import DataFrame, GoAwayFrame, PingFrame, RstStreamFrame, SettingsFrame

from tests.adapters.http2.client import Tls, client
from tests.adapters.http2.scripted import Served, ordinary, scripted
from tests.unit.http2 import peer
from waypost.http2 import (
    Answer,
    ConnectionClosed,
    ConnectionOpened,
    GoAwayReceived,
    Lost,
    Result,
    Unknown,
    Unsent,
)
from waypost.http2.frames import CANCEL, REFUSED_STREAM

OK = Answer(200, (), b"ok")


@pytest.mark.asyncio
async def test_goaway_resends_what_was_not_processed_and_nothing_else(tls: Tls) -> None:
    """Three in flight, GOAWAY names the first: it is answered there, the others on another connection, each once."""
    resent: list[int] = []

    async def goes_away(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        for _ in range(3):
            await served.request()
        served.say(peer.goaway(1, 0, b'{"reason":"Shutdown"}'), peer.answer(1))
        await served.read_to_end()

    async def takes_over(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        while True:
            resent.append(await served.request())
            served.say(peer.answer(resent[-1]))

    async with scripted(tls.server("h2"), goes_away, takes_over) as port, client(port, tls) as one:
        assert await asyncio.gather(*[one.ask() for _ in range(3)]) == [OK] * 3
        assert await one.saw(GoAwayReceived) == GoAwayReceived(0, 1, b'{"reason":"Shutdown"}')
        assert "GOAWAY: NO_ERROR" in (await one.saw(ConnectionClosed)).reason
        assert len(resent) == 2 and one.pool.stats.resent_total == 2


@pytest.mark.asyncio
async def test_a_request_that_goaways_give_back_is_resent_while_there_is_time(tls: Tls) -> None:
    """Every connection goes away before it, until its deadline: Unsent, with the server's word, and with backoff.

    What is on the wire at the deadline is waited for, so that its end does not depend on when the machine has time.
    """

    async def goes_away(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        await served.request()
        served.say(peer.goaway(0, 11))
        await served.read_to_end()

    async with scripted(tls.server("h2"), goes_away) as port, client(port, tls) as one:
        await one.saw(ConnectionOpened)
        result = await one.ask(deadline_s=0.5, answer_within_s=20.0)
        assert result == Unsent("the server went away before this request: ENHANCE_YOUR_CALM")
        assert one.pool.stats.goaways_total >= 1


@pytest.mark.asyncio
async def test_a_refused_stream_goes_to_another_connection_and_a_reset_one_nowhere(tls: Tls) -> None:
    """REFUSED_STREAM is resent where it was not refused; CANCEL may have been processed."""

    async def refuses(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        served.say(peer.rst(await served.request(), REFUSED_STREAM))
        served.say(peer.rst(await served.request(), CANCEL))
        await served.read_to_end()

    settings: dict[str, Any] = {"min_connections": 2, "max_connections": 2}
    async with scripted(tls.server("h2"), refuses, ordinary) as port, client(port, tls, **settings) as one:
        await one.saw(ConnectionOpened, 2)
        results = [await one.ask(), await one.ask()]
        assert OK in results and Unknown("the server reset the stream: CANCEL", Lost.RESET) in results


@pytest.mark.asyncio
async def test_the_stream_limit_is_obeyed_through_every_change(tls: Tls) -> None:
    """1 → 50 → 10 → 1 with 200 requests waiting; the server counts what is open under each limit."""
    most_open: list[int] = []

    async def changes(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=1)
        served.say(peer.answer(await served.request()))
        for limit in (50, 10, 1):
            served.say(peer.settings(MAX_CONCURRENT_STREAMS=limit))
            await served.until(SettingsFrame, "ACK")
            # What was open before a limit fell may stay; it is let go, and then the new limit shows.
            while True:
                open_now = [await served.request()]
                served.say(peer.ping(b"are you "))
                while not isinstance(frame := await served.frame(), PingFrame):
                    if isinstance(frame, DataFrame):
                        open_now.append(frame.stream_id)
                served.say(*[peer.answer(stream_id) for stream_id in open_now])
                if len(open_now) <= limit:
                    most_open.append(len(open_now))
                    break
        await served.answer_all()

    async with scripted(tls.server("h2"), changes) as port, client(port, tls) as one:
        results = [one.ask() for _ in range(200)]
        assert await asyncio.gather(*results) == [OK] * 200
    assert most_open == [50, 10, 1]


@pytest.mark.asyncio
async def test_a_deadline_in_flight_resets_the_stream(tls: Tls) -> None:
    """A black hole: Unknown at the deadline, RST_STREAM(CANCEL) on the wire, the connection stays of use."""
    reset: list[RstStreamFrame] = []

    async def swallows_one(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        await served.request()
        reset.append(await served.until(RstStreamFrame))
        await served.answer_all()

    async with scripted(tls.server("h2"), swallows_one) as port, client(port, tls) as one:
        await one.saw(ConnectionOpened)
        assert await one.ask(deadline_s=0.1) == Unknown("no answer before the deadline", Lost.TIMEOUT)
        assert await one.ask() == OK
        assert reset[0].error_code == CANCEL and one.pool.stats.opened_total == 1


@pytest.mark.asyncio
async def test_a_window_that_never_opens_ends_at_the_deadline(tls: Tls) -> None:
    """Partly written is Unknown; what waited behind it for the window was provably not written."""

    async def never_opens(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100, INITIAL_WINDOW_SIZE=1 << 20)
        await served.read_to_end()

    async with scripted(tls.server("h2"), never_opens) as port, client(port, tls) as one:
        await one.saw(ConnectionOpened)
        large, queued = one.ask(b"x" * 100_000, 0.3), one.ask(b"y", 0.3)
        assert await large == Unknown("no answer before the deadline", Lost.TIMEOUT)
        assert await queued == Unsent("deadline passed while queued")


@pytest.mark.asyncio
async def test_protocol_faults_end_the_connection_with_goaway(tls: Tls) -> None:
    """PUSH_PROMISE although push is off: the server is told why, the next connection serves."""
    told: list[GoAwayFrame] = []

    async def pushes(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        served.say(peer.raw(5, 4, await served.request(), bytes(4)))
        told.append(await served.until(GoAwayFrame))

    async with scripted(tls.server("h2"), pushes, ordinary) as port, client(port, tls) as one:
        result = await one.ask()
        assert isinstance(result, Unknown) and "PUSH_PROMISE" in result.reason
        assert await one.ask() == OK
    assert told[0].error_code == 1


@pytest.mark.asyncio
async def test_a_server_that_does_not_read_gets_no_more_requests(tls: Tls) -> None:
    """Its socket and our buffer are full: what is not written waits in the queue and is Unsent at its deadline."""
    windows_open = asyncio.Event()
    go_on = asyncio.Event()

    async def does_not_read(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=1000, INITIAL_WINDOW_SIZE=1 << 30)
        served.say(peer.window(0, 1 << 30), peer.ping(b"has come"))
        await served.until(PingFrame)
        windows_open.set()
        await go_on.wait()
        await served.answer_all()

    async with scripted(tls.server("h2"), does_not_read) as port, client(port, tls) as one:
        large: list[asyncio.Future[Result]] = []
        await windows_open.wait()
        while one.pool.room():
            large.append(one.ask(b"x" * 500_000))
            await asyncio.sleep(0)
        assert await one.ask(b"late", 0.1) == Unsent("deadline passed while queued")
        go_on.set()
        assert await asyncio.gather(*large) == [OK] * len(large)
        assert await one.ask() == OK


@pytest.mark.asyncio
async def test_goaway_in_two_steps_loses_nothing(tls: Tls) -> None:
    """First "no more" with the highest id, then the true one: what came between is resent once, the rest answered."""

    async def goes_gracefully(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        first = await served.request()
        served.say(peer.goaway(2**31 - 1), peer.ping(b"not new?"))
        await served.until(PingFrame, "ACK")
        served.say(peer.answer(first), peer.goaway(first))
        await served.read_to_end()

    async with (
        scripted(tls.server("h2"), goes_gracefully, ordinary) as port,
        client(port, tls, initial_stream_limit=3) as one,
    ):
        assert await asyncio.gather(*[one.ask() for _ in range(3)]) == [OK] * 3
        assert (await one.saw(GoAwayReceived, 2)).last_stream_id == 1
        assert one.pool.stats.resent_total == 2


@pytest.mark.asyncio
async def test_a_window_below_zero_waits_for_what_is_owed(tls: Tls) -> None:
    """The initial window falls under what was sent: nothing more goes out until the debt is paid (RFC 9113, 6.9.2)."""
    written: list[int] = []

    async def lowers_the_window(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100, INITIAL_WINDOW_SIZE=1000)
        await served.until(DataFrame)
        served.say(peer.settings(INITIAL_WINDOW_SIZE=100), peer.window(1, 900), peer.ping(b"nothing?"))
        before = len(served.seen)
        await served.until(PingFrame)
        assert not any(isinstance(frame, DataFrame) for frame in served.seen[before:])
        served.say(peer.window(1, 1))
        written.append(len((await served.until(DataFrame)).data))
        served.say(peer.settings(INITIAL_WINDOW_SIZE=10_000))
        served.say(peer.answer(await served.request()))
        await served.read_to_end()

    async with (
        scripted(tls.server("h2"), lowers_the_window) as port,
        client(port, tls, initial_stream_limit=0) as one,
    ):
        assert await one.ask(b"x" * 5000) == OK
    assert written == [1]


@pytest.mark.asyncio
async def test_an_answer_before_the_end_of_the_request_is_taken(tls: Tls) -> None:
    """413 while the body still waits for the window: the answer counts, the stream is reset, the next is served."""

    async def has_seen_enough(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100, INITIAL_WINDOW_SIZE=10)
        await served.until(DataFrame)
        served.say(peer.head(1, b"413", end=True))
        assert (await served.until(RstStreamFrame)).error_code == CANCEL
        await served.answer_all()

    async with scripted(tls.server("h2"), has_seen_enough) as port, client(port, tls, initial_stream_limit=0) as one:
        assert await one.ask(b"x" * 5000) == Answer(413, (), b"")
        assert await one.ask(b"short") == OK and one.pool.stats.opened_total == 1


@pytest.mark.asyncio
async def test_an_unused_connection_is_asked_and_given_up(tls: Tls) -> None:
    """No request, no byte for a while: PING; no answer to it: the connection is cut before anybody needs it."""

    async def sleeps(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        await served.until(PingFrame)
        await served.read_to_end()

    settings: dict[str, Any] = {"ping_after_idle_s": 0.1, "ping_timeout_s": 0.1}
    async with scripted(tls.server("h2"), sleeps, ordinary) as port, client(port, tls, **settings) as one:
        assert "PING not answered" in (await one.saw(ConnectionClosed)).reason
        assert await one.ask() == OK
