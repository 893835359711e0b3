"""How a connection is opened: through a proxy, in time or not at all, and never too many."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from tests.adapters.http2.client import Tls, client
from tests.adapters.http2.scripted import Served, ordinary, scripted
from tests.unit.http2 import peer
from waypost.http2 import (
    Answer,
    ConnectFailed,
    ConnectionClosed,
    ConnectionOpened,
    Proxy,
    Sockets,
    Unsent,
    proxy_of,
)

OK = Answer(200, (), b"ok")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


@contextlib.asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """A server of anything."""
    tasks: set[asyncio.Task[None]] = set()

    async def remembered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(remembered, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def tunnel_to(port: int, asked: list[bytes]) -> Serve:
    """An HTTP proxy that knows one server, whatever its name, and wants a password."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head)
        if b"Proxy-Authorization: Basic bWU6cGFzcw==\r\n" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")
        with contextlib.closing(back):
            await asyncio.gather(copy(reader, back), copy(there, writer))

    return serve


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """One direction of a tunnel."""
    while piece := await source.read(65_536):
        sink.write(piece)
    sink.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("encrypted", [True, False], ids=["TLS", "clear text"])
async def test_requests_go_through_a_proxy_that_resolves_the_name(tls: Tls, encrypted: bool) -> None:
    """CONNECT with the origin's name and port, its login, then the same connection as without it."""
    asked: list[bytes] = []
    async with (
        scripted(tls.server("h2") if encrypted else None, ordinary) as port,
        listening(tunnel_to(port, asked)) as proxy_port,
    ):
        proxy = proxy_of(f"http://me:pass@127.0.0.1:{proxy_port}")
        async with client(7, tls if encrypted else None, host="api.nowhere.invalid", proxy=proxy) as one:
            assert await one.ask() == OK
    assert asked[0].startswith(b"CONNECT api.nowhere.invalid:7 HTTP/1.1\r\nHost: api.nowhere.invalid:7\r\n")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "answers 407"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "answers 502"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\n", "closed the connection"),
        (b"x" * 10_000, "answers without end"),
    ],
)
async def test_a_proxy_that_opens_no_tunnel_is_named_without_its_password(tls: Tls, answer: bytes, reason: str) -> None:
    """Nothing was sent; the operator learns what the proxy said."""

    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async with listening(refuses) as proxy_port:
        proxy = Proxy("127.0.0.1", proxy_port, "Basic secret")
        async with client(7, tls, host="api.nowhere.invalid", proxy=proxy) as one:
            result = await one.ask()
            assert isinstance(result, Unsent)
            assert result.reason == f"proxy 127.0.0.1:{proxy_port} on the way to api.nowhere.invalid: {reason}"


@pytest.mark.asyncio
@pytest.mark.parametrize("where", ["TLS handshake", "proxy"])
async def test_a_black_hole_on_the_way_ends_with_the_time_to_connect(tls: Tls, where: str) -> None:
    """Somebody accepts and says nothing: the attempt fails in its time, and its socket is closed."""
    hung_up = asyncio.Event()

    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(65_536):
                pass
        finally:
            hung_up.set()

    async with listening(says_nothing) as port:
        proxy = Proxy("127.0.0.1", port) if where == "proxy" else None
        settings: dict[str, Any] = {"connect_timeout_s": 0.1, "backoff_base_s": 1000.0, "backoff_cap_s": 1000.0}
        async with client(port, tls, proxy=proxy, **settings) as one:
            result = await one.ask(deadline_s=60)
            assert result == Unsent(f"no connection to 127.0.0.1:{port} within 0.1 s")
            await hung_up.wait()
            assert one.pool.stats.connecting == 0


@pytest.mark.asyncio
async def test_a_name_that_is_none_is_a_failure_to_connect(tls: Tls) -> None:
    """The resolver raises what is no OSError."""
    async with client(7, tls, host="a..b") as one:
        result = await one.ask()
        assert isinstance(result, Unsent) and "cannot resolve a..b" in result.reason


@pytest.mark.asyncio
async def test_a_server_that_greets_and_ends_has_taken_nothing(tls: Tls) -> None:
    """GOAWAY as its first word, before any request: resent once elsewhere, then served."""

    async def is_full(served: Served) -> None:
        await served.greet()
        served.say(peer.goaway(0, 0))
        await served.read_to_end()

    async with scripted(tls.server("h2"), is_full, ordinary) as port, client(port, tls) as one:
        assert await one.ask() == OK


@pytest.mark.asyncio
async def test_pools_that_share_sockets_never_have_more(tls: Tls) -> None:
    """One socket for two pools: the second waits until the first has ended its connection."""
    sockets = Sockets(1)
    may_end = asyncio.Event()

    async def ends(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        served.say(peer.answer(await served.request()))
        await may_end.wait()

    async with (
        scripted(tls.server("h2"), ends, ordinary) as port,
        client(port, tls, sockets=sockets, min_connections=0) as first,
    ):
        assert await first.ask() == OK
        async with client(port, tls, sockets=sockets) as second:
            waiting = second.ask()
            assert second.pool.stats.connecting == 0 and sockets.open == 1
            may_end.set()
            await first.saw(ConnectionClosed)
            assert await waiting == OK
            assert not [event for event in second.events if isinstance(event, ConnectFailed)]
    assert sockets.open == 0


@pytest.mark.asyncio
async def test_connections_that_only_end_count_as_sockets(tls: Tls) -> None:
    """GOAWAY with a request in flight: no successor beyond the sockets until the old connection is gone."""
    gone_away = asyncio.Event()
    answer_now = asyncio.Event()

    async def goes_away(served: Served) -> None:
        await served.greet(MAX_CONCURRENT_STREAMS=100)
        stream_id = await served.request()
        served.say(peer.goaway(stream_id))
        gone_away.set()
        await answer_now.wait()
        served.say(peer.answer(stream_id))
        await served.read_to_end()

    async with (
        scripted(tls.server("h2"), goes_away, ordinary) as port,
        client(port, tls, sockets=Sockets(1), ping_timeout_s=0.2) as one,
    ):
        first = one.ask()
        await gone_away.wait()
        second = one.ask()
        await asyncio.sleep(0)
        assert one.pool.stats.opened_total == 1 and one.pool.stats.connecting == 0
        answer_now.set()
        assert await asyncio.gather(*[first, second]) == [OK, OK]
        await one.saw(ConnectionOpened, 2)


@pytest.mark.asyncio
async def test_stream_ids_run_out_and_another_connection_goes_on(tls: Tls) -> None:
    """RFC 9113, 5.1.1: the last id is used, its answer taken, the next request has a new connection."""
    async with scripted(tls.server("h2"), ordinary) as port, client(port, tls) as one:
        assert await one.ask() == OK
        one.pool._links.ready[0].connection._next_id = 2**31 - 3
        assert await asyncio.gather(*[one.ask() for _ in range(5)]) == [OK] * 5
        assert (await one.saw(ConnectionClosed)).reason == "out of stream ids"
        assert one.pool.stats.opened_total == 2 and one.pool.stats.resent_total == 0
