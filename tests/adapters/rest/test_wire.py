"""The API on a real socket: what only a server can get wrong."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import uvicorn

from tests.adapters.rest.service import Service, shown
from waypost.entrypoints.rest.serving import serve_options
from waypost.entrypoints.rest.settings import RestSettings

pytestmark = pytest.mark.asyncio

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Listening:
    """A server on a socket it inherited, as a worker runs it."""

    def __init__(self, service: Service, port: int, connections: Collection[object]) -> None:
        self.service = service
        self.port = port
        self._connections = connections

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Wire]:
        """A connection of a client with no manners."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def until_at_most(self, count: int) -> None:
        """Return when no more connections than that are left."""
        async with asyncio.timeout(60):
            while len(self._connections) > count:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)

    def head(self, path: str = "/v1/notifications", *more: str, method: str = "POST") -> bytes:
        """A request head with a key, without its end."""
        fields = [f"{method} {path} HTTP/1.1", "host: x", f"authorization: Bearer {self.service.made.text}", *more]
        return "".join(f"{line}\r\n" for line in fields).encode()


@asynccontextmanager
async def listening(settings: RestSettings) -> AsyncIterator[Listening]:
    """A server in this event loop, ended afterwards."""
    service = Service(settings)
    await service.add_keys()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(service.app, **serve_options(settings)))
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[listener])
        try:
            yield Listening(service, listener.getsockname()[1], server.server_state.connections)
        finally:
            await server.shutdown(sockets=[listener])


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], dict]:
    """Status, headers and body of one answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers, json.loads(body)


async def test_two_requests_on_one_connection_are_answered_in_order() -> None:
    """Keep-alive and pipelining; nothing says which server this is."""
    body = json.dumps(shown()).encode()
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        request = server.head("/v1/notifications", "content-type: application/json", f"content-length: {len(body)}")
        writer.write((request + b"\r\n" + body) * 2)
        first, second = [await answer(reader) for _ in range(2)]
        assert (first[0], second[0]) == (202, 200)
        assert "server" not in first[1]


@pytest.mark.parametrize("sent", [b"GET /" + b"a" * 5_000, b"GET / HTTP/1.1\r\nx: " + b"y" * 5_000])
async def test_a_head_without_end_is_431(sent: bytes) -> None:
    """Before it is whole: it is not kept."""
    async with listening(RestSettings(headers_limit_bytes=4_000)) as server, server.connected() as (reader, writer):
        writer.write(sent)
        status, headers, problem = await answer(reader)
        assert (status, problem["code"], headers["connection"]) == (431, "headers_too_large", "close")
        assert await reader.read() == b""


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
async def test_a_head_that_does_not_come_is_408(sent: bytes) -> None:
    """A connection is not held open by silence."""
    async with listening(RestSettings(head_timeout_s=0.01)) as server, server.connected() as (reader, writer):
        writer.write(sent)
        status, _, problem = await answer(reader)
        assert (status, problem["code"]) == (408, "request_timeout")
        assert await reader.read() == b""


async def test_a_body_that_does_not_come_is_408() -> None:
    """The connection closes after the answer."""
    settings = RestSettings(body_timeout_s=0.01, linger_s=0.01)
    async with listening(settings) as server, server.connected() as (reader, writer):
        writer.write(server.head("/v1/notifications", "content-length: 100") + b'\r\n{"user_id":')
        status, _, problem = await answer(reader)
        assert (status, problem["code"]) == (408, "request_timeout")
        assert await reader.read() == b""


@pytest.mark.parametrize("framing", ["content-length: 4000000", "transfer-encoding: chunked"])
async def test_a_client_that_sends_on_still_reads_why_it_was_refused(framing: str) -> None:
    """An unread body is drained for a while, so that no reset overtakes the answer."""
    piece = b" " * 4_000_000 if "length" in framing else b"3d0900\r\n" + b" " * 4_000_000 + b"\r\n0\r\n\r\n"
    settings = RestSettings(body_limit_bytes=1_000)
    async with listening(settings) as server, server.connected() as (reader, writer):
        writer.write(server.head("/v1/notifications", framing) + b"\r\n" + piece)
        await writer.drain()
        status, _, problem = await answer(reader)
        assert (status, problem["code"]) == (413, "too_large")
        assert await reader.read() == b""


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"NONSENSE\r\n\r\n"])
async def test_what_is_not_http_is_400(sent: bytes) -> None:
    """As a problem too."""
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        writer.write(sent)
        status, _, problem = await answer(reader)
        assert (status, problem["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /health/live HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"GET /health/live HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", id="two hosts"),
        pytest.param(b"GET /health/live\r\n\r\n", id="no version"),
        pytest.param(b"GET /health/live HTTP/2.0\r\nhost: a\r\n\r\n", id="another version"),
    ],
)
async def test_a_head_that_others_may_read_otherwise_is_400(head: bytes) -> None:
    """RFC 9112, section 3.2: what stands before us may have taken it for another request."""
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        writer.write(head)
        status, headers, problem = await answer(reader)
        assert (status, problem["code"], headers["connection"]) == (400, "invalid_request", "close")
        assert await reader.read() == b""


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        (("authorization: Bearer other",), (401, "unauthenticated")),
        (("authorization: Basic b3RoZXI=",), (401, "unauthenticated")),
        (("authorization:",), (401, "unauthenticated")),
        (("x-api-key: other",), (401, "unauthenticated")),
        (("idempotency-key: a", "idempotency-key: b"), (400, "invalid_request")),
        (("content-type: application/json", "content-type: text/plain"), (400, "invalid_request")),
    ],
)
async def test_what_may_be_said_once_is_not_taken_twice(more: Sequence[str], refused: tuple[int, str]) -> None:
    """Whoever looked at the head before us may have believed the other one."""
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        writer.write(server.head("/v1/notifications", *more, "content-length: 2") + b"\r\n{}")
        status, _, problem = await answer(reader)
        assert (status, problem["code"]) == refused


async def test_a_chunk_with_endless_extensions_is_431() -> None:
    """In one read, too: the parser passes over them, and somebody pays for it."""
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        head = server.head("/v1/notifications", "content-type: application/json", "transfer-encoding: chunked")
        writer.write(head + b"\r\n2;" + b"x" * 70_000 + b"\r\n{}\r\n0\r\n\r\n")
        status, _, problem = await answer(reader)
        assert (status, problem["code"]) == (431, "headers_too_large")


@pytest.mark.parametrize("target", ["GET /health/live", "GET /docs", "GET /nothing", "PUT /metrics", "GET /v1/keys"])
async def test_every_answer_has_the_id_of_its_request(target: str) -> None:
    """From the route, the framework, or one who refuses before either."""
    method, _, path = target.partition(" ")
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: x\r\nx-request-id: call-7\r\ncontent-length: 0\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.lower().count(b"x-request-id: call-7\r\n") == 1


async def test_what_is_no_request_is_answered_with_an_id() -> None:
    """Or nobody could say which line of a proxy's log it was."""
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        writer.write(b"NONSENSE\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).count(b"x-request-id: ") == 1


@pytest.mark.parametrize("path", ["/nothing", "/v1/nothing", "/v1/notifications/x/y/z", "/metrics"])
async def test_no_byte_of_a_body_is_read_that_no_route_takes(path: str) -> None:
    """The answer comes while the body has not; many of them do not count as bodies that are being read."""
    settings = RestSettings(bodies_limit_bytes=10, linger_s=0.01)
    async with listening(settings) as server, server.connected() as (reader, writer):
        writer.write(server.head(path, "content-type: application/json", "content-length: 500000") + b"\r\n{")
        status, headers, problem = await answer(reader)
        assert (status, headers["connection"]) == (405 if path == "/metrics" else 404, "close")
        assert problem["status"] == status


async def test_whom_nobody_knows_makes_room_though_a_request_is_in_hand() -> None:
    """Strangers with half a body would otherwise keep all places."""
    settings = RestSettings(connections_limit=3, linger_s=30.0)
    async with listening(settings) as server, AsyncExitStack() as held:
        strangers = [await held.enter_async_context(server.connected()) for _ in range(3)]
        for reader, writer in strangers:
            writer.write(b"POST /v1/notifications HTTP/1.1\r\nhost: x\r\ncontent-length: 500000\r\n\r\n{")
            assert (await answer(reader))[0] == 401
        async with server.connected() as (reader, writer):
            writer.write(server.head("/v1/dead", method="GET") + b"\r\n")
            assert (await answer(reader))[0] == 200
        await server.until_at_most(3)


async def test_an_upgrade_is_not_taken() -> None:
    """There are no web sockets here."""
    upgrade = ("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: x")
    async with listening(RestSettings()) as server, server.connected() as (reader, writer):
        writer.write(server.head("/v1/dead", *upgrade, method="GET") + b"\r\n")
        status, _, _ = await answer(reader)
        assert status == 200
