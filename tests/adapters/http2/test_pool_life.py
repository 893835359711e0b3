"""How a pool grows, rotates, refuses and ends, over real connections."""

import asyncio
import socket
from typing import Any

import pytest

from tests.adapters.http2.client import HEAD, Tls, client
from tests.adapters.http2.scripted import Served, ordinary, scripted
from tests.shows import shows
from tests.unit.http2 import peer
from waypost.http2 import Answer, ConnectFailed, ConnectionClosed, ConnectionOpened, Result, Unknown, Unsent

OK = Answer(200, (), b"ok")


async def swallows(served: Served) -> None:
    """A server that takes requests and answers none."""
    await served.greet(MAX_CONCURRENT_STREAMS=2)
    await served.read_to_end()


@pytest.mark.asyncio
async def test_a_full_queue_refuses_at_once(tls: Tls) -> None:
    """Two streams, a queue of one: the fourth request is told so, before any deadline."""
    async with scripted(tls.server("h2"), swallows) as port, client(port, tls, max_queue=3) as one:
        results = [one.ask(deadline_s=60) for _ in range(4)]
        assert await results[3] == Unsent("queue full")
        assert not any([result.done() for result in results[:3]])


@pytest.mark.asyncio
async def test_a_deadline_in_the_past_is_not_sent(tls: Tls) -> None:
    """Nothing reaches the server."""
    async with scripted(tls.server("h2"), ordinary) as port, client(port, tls) as one:
        await one.saw(ConnectionOpened)
        assert await one.ask(deadline_s=-1) == Unsent("deadline passed before it was sent")


@pytest.mark.asyncio
async def test_what_cannot_be_reached_in_time_is_refused_at_once(tls: Tls) -> None:
    """The next attempt comes after the deadline: waiting for it would be of no use."""
    async with scripted(tls.server("h2"), ordinary) as port:
        pass
    long: dict[str, Any] = {"backoff_base_s": 1000.0, "backoff_cap_s": 1000.0, "backoff_waiting_cap_s": 1000.0}
    async with client(port, tls, **long) as one:
        await one.saw(ConnectFailed)
        result = await one.ask(deadline_s=400)
        assert isinstance(result, Unsent) and result.reason.startswith("no connection before the deadline")


@shows("S1-87")
@pytest.mark.asyncio
async def test_the_pool_grows_under_load_to_its_maximum_and_not_beyond(tls: Tls) -> None:
    """Past the high mark another connection is opened; at the maximum requests queue."""

    async def answers_one(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=2)
        served.say(peer.answer(await served.request()))
        await served.read_to_end()

    settings: dict[str, Any] = {"max_connections": 3, "ping_after_silence_s": None}
    async with scripted(tls.server("h2"), answers_one) as port, client(port, tls, **settings) as one:
        await one.ask()
        open_requests: set[asyncio.Future[Result]] = set()
        for opened in (2, 3):
            open_requests |= {one.ask() for _ in range(4)}
            await one.saw(ConnectionOpened, opened)
            _, open_requests = await asyncio.wait(open_requests, return_when=asyncio.FIRST_COMPLETED)
        for _ in range(20):
            one.ask()
        stats = one.pool.stats
        assert stats.connections == 3 and stats.handshakes_total == 3 and stats.queued >= 14


@pytest.mark.asyncio
async def test_a_connection_is_replaced_at_its_maximum_age(tls: Tls) -> None:
    """The successor is opened first, the old one closed; requests go on."""
    async with (
        scripted(tls.server("h2"), ordinary) as port,
        client(port, tls, max_connections=2, max_age_s=0.1) as one,
    ):
        assert await one.ask() == OK
        await one.saw(ConnectionClosed, 2)
        first = next(n for n, event in enumerate(one.events) if isinstance(event, ConnectionClosed))
        assert first >= 2 and {type(event) for event in one.events[:first]} == {ConnectionOpened}
        assert one.events[first] == ConnectionClosed("reached its maximum age")
        assert await one.ask() == OK


@pytest.mark.asyncio
async def test_an_idle_connection_is_closed_and_opened_when_needed(tls: Tls) -> None:
    """With no minimum nothing stays open."""
    settings: dict[str, Any] = {"min_connections": 0, "idle_timeout_s": 0.1}
    async with scripted(tls.server("h2"), ordinary) as port, client(port, tls, **settings) as one:
        assert one.pool.stats.handshakes_total == 0
        assert await one.ask() == OK
        assert (await one.saw(ConnectionClosed)).reason == "idle for 0.1 s"
        assert await one.ask() == OK
        assert one.pool.stats.opened_total == 2


@pytest.mark.asyncio
async def test_servers_that_only_hang_up_are_met_with_backoff(tls: Tls) -> None:
    """Connections that were of no use count as failures: the pool does not spin."""

    async def hangs_up(served: Served) -> None:
        await served.greet()

    settings: dict[str, Any] = {"backoff_base_s": 1000.0, "backoff_cap_s": 1000.0}
    async with scripted(tls.server("h2"), hangs_up) as port, client(port, tls, **settings) as one:
        await one.saw(ConnectionClosed)
        await asyncio.sleep(0)
        assert one.pool.stats.handshakes_total == 1


@pytest.mark.asyncio
async def test_the_name_is_resolved_for_every_connection(tls: Tls) -> None:
    """A moved service is found by the next connection."""
    if not isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop):
        pytest.skip("uvloop asks the C library, where nobody can listen")
    asked: list[str] = []
    resolve = socket.getaddrinfo

    def listening(host: Any, *args: Any, **named: Any) -> Any:
        asked.append(host)
        return resolve(host, *args, **named)

    async def hangs_up_after_one(served: Served) -> None:
        await served.greet()
        served.say(peer.answer(await served.request()))

    async with scripted(tls.server("h2"), hangs_up_after_one) as port:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", listening)
            async with client(port, tls, host="localhost") as one:
                assert await one.ask() == OK
                await one.saw(ConnectionOpened, 2)
    assert asked.count("localhost") >= 2


@pytest.mark.asyncio
async def test_drain_waits_for_answers_and_takes_no_more(tls: Tls) -> None:
    """What is queued and in flight ends well, what comes later is Unsent."""
    async with scripted(tls.server("h2"), ordinary) as port, client(port, tls) as one:
        results = [one.ask() for _ in range(300)]
        draining = asyncio.create_task(one.pool.drain(20))
        await asyncio.sleep(0)
        assert await one.ask() == Unsent("the pool is draining")
        await draining
        assert [result.result() for result in results] == [OK] * 300


@pytest.mark.asyncio
async def test_close_ends_everything_at_once(tls: Tls) -> None:
    """In flight: Unknown; queued: Unsent; after drain's time is over, too."""
    both_arrived = asyncio.Event()

    async def swallows_two(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=2)
        await served.request()
        await served.request()
        both_arrived.set()
        await served.read_to_end()

    async with scripted(tls.server("h2"), swallows_two) as port, client(port, tls) as one:
        results = [one.ask() for _ in range(3)]
        await one.saw(ConnectionOpened)
        await both_arrived.wait()
        await one.pool.drain(0.01)
        await one.pool.close()
        reason = "the pool is closed"
        assert await asyncio.gather(*results) == [Unknown(reason), Unknown(reason), Unsent(reason)]
        assert await one.ask() == Unsent(reason)


@pytest.mark.asyncio
async def test_a_callback_that_raises_takes_nobody_elses_result(tls: Tls) -> None:
    """The loop's exception handler is told, the others' answers come."""
    loop = asyncio.get_running_loop()
    async with scripted(tls.server("h2"), ordinary) as port, client(port, tls) as one:
        told = loop.create_future()
        loop.set_exception_handler(lambda loop, context: told.set_result(context["exception"]))
        failure = RuntimeError("a caller's bug")

        def raises(result: Result) -> None:
            raise failure

        one.pool.request(HEAD, b"", loop.time() + 20, raises)
        assert await one.ask() == OK and await told is failure


@pytest.mark.asyncio
async def test_room_is_what_goes_out_without_queueing(tls: Tls) -> None:
    """All free streams of the connections that are ready; none while something waits."""
    async with scripted(tls.server("h2"), swallows) as port, client(port, tls, initial_stream_limit=2) as one:
        assert one.pool.room() == 0
        await one.saw(ConnectionOpened)
        assert one.pool.room() == 2
        one.ask()
        assert one.pool.room() == 1
        one.ask()
        one.ask()
        assert one.pool.room() == 0 and one.pool.stats.queued == 1
