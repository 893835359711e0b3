"""Connections are kept, and what is kept never costs a call or answers the wrong one."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.unit.client.servers import CLOSE, http, keeping, ok
from waypost.client import ApiError, AsyncClient, Client, ConnectionLost

pytestmark = pytest.mark.asyncio

Ask = Callable[..., Awaitable[Any]]
"""Call a method of one client by its name."""


@asynccontextmanager
async def asking(kind: type[Client | AsyncClient], url: str, **options: Any) -> AsyncIterator[Ask]:
    """One client, whichever kind it is."""
    if issubclass(kind, AsyncClient):
        async with kind(url, "key", **options) as asynchronous:
            yield lambda name, *given, **named: getattr(asynchronous, name)(*given, **named)
    else:
        with kind(url, "key", **options) as blocking:
            yield lambda name, *given, **named: asyncio.to_thread(getattr(blocking, name), *given, **named)


LAST_CHUNK = b"0\r\nT: x\r\n\r\n"
FORKS = """
import os, sys
from waypost.client import Client

client = Client(sys.argv[1], "key")
client.show("1")
child = os.fork()
client.show("1") if child == 0 else os.waitpid(child, 0)
client.show("1") if child else None
"""

both = pytest.mark.parametrize("kind", [Client, AsyncClient])


@both
async def test_calls_share_one_connection(kind: type[Client | AsyncClient]) -> None:
    async with keeping(ok(id="1")) as server, asking(kind, server.url) as ask:
        for _ in range(3):
            assert (await ask("send", {"user_id": "ann", "title": "Hi"}))["id"] == "1"
        assert (len(server.heads), server.connections) == (3, 1)


@both
async def test_calls_share_one_connection_behind_tls(kind: type[Client | AsyncClient], tmp_path: Path) -> None:
    """TLS 1.3 sends its session tickets unasked, which is nothing to fear."""
    authority = Authority(tmp_path, "servers")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.issue("server"))
    async with keeping(ok(id="1"), tls=tls) as server, asking(kind, server.url, ca_file=authority.file) as ask:
        for _ in range(3):
            await ask("show", "1")
        assert (len(server.heads), server.connections) == (3, 1)


@both
async def test_a_refusal_keeps_the_connection(kind: type[Client | AsyncClient]) -> None:
    async with keeping(http("404 Not Found", b'{"code": "not_found"}'), ok(items=[])) as server:
        async with asking(kind, server.url) as ask:
            with pytest.raises(ApiError, match="not_found"):
                await ask("show", "1")
            await ask("history")
        assert server.connections == 1


@both
async def test_a_kept_connection_that_the_server_closed_costs_no_call(kind: type[Client | AsyncClient]) -> None:
    """Nor an attempt: a new one is opened, also where nothing is to be repeated."""
    async with keeping((ok(id="1"), CLOSE)) as server, asking(kind, server.url, retry_s=0) as ask:
        for _ in range(3):
            await ask("send", {"user_id": "ann", "title": "Hi"})
        assert (len(server.heads), server.connections) == (3, 3)


@both
async def test_one_that_ends_at_the_next_request_costs_no_call_and_repeats_the_same_key(
    kind: type[Client | AsyncClient],
) -> None:
    """The server closed it while the request was on its way: it may have been carried out."""
    async with keeping(ok(id="1"), (CLOSE,), ok(id="2")) as server, asking(kind, server.url, retry_s=0) as ask:
        await ask("history")
        assert (await ask("send", {"user_id": "ann", "title": "Hi"}))["id"] == "2"
        first, second = (json.loads(body)["idempotency_key"] for body in server.bodies[1:])
        assert first == second
        assert server.connections == 2


@both
async def test_what_must_not_be_repeated_takes_a_connection_of_its_own(kind: type[Client | AsyncClient]) -> None:
    async with keeping(ok(id="1")) as server, asking(kind, server.url) as ask:
        await ask("show", "1")
        await ask("replay", "1")
        assert server.connections == 2


@both
@pytest.mark.parametrize("turns", [0, 5], ids=["not read yet", "read by the loop"])
async def test_what_comes_unasked_is_not_the_next_answer(kind: type[Client | AsyncClient], turns: int) -> None:
    """Such as the 408 of a proxy that closes an idle connection."""
    async with keeping(ok(id="1"), ok(id="2")) as server, asking(kind, server.url) as ask:
        assert (await ask("show", "1"))["id"] == "1"
        server.writers[0].write(http("200 OK", b'{"id": "of nobody"}'))
        for _ in range(turns):
            await asyncio.sleep(0)
        assert (await ask("show", "2"))["id"] == "2"
        assert server.connections == 2


@both
@pytest.mark.parametrize(
    "parts",
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7;x=y\r\n",
            b'{"id": \r\n4\r\n"1"}\r\n0\r\nT: x\r\n\r\n',
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n", ok(id="1")),
        (b'HTTP/1.1 200 OK\r\n\r\n{"id": ', b'"1"}', CLOSE),
        (b'HTTP/1.0 200 OK\r\nContent-Length: 11\r\n\r\n{"id": "1"}', CLOSE),
        (b"HTTP/1.1 200 OK\r\ncontent-length:11\r\nConnection: close\r\n\r\n", b'{"id": "1"}'),
    ],
    ids=["chunked", "an interim answer", "until the end", "HTTP/1.0", "in lower case, to be closed"],
)
async def test_each_form_of_answer_is_read(kind: type[Client | AsyncClient], parts: tuple[bytes, ...]) -> None:
    async with keeping(parts) as server, asking(kind, server.url, retry_s=0) as ask:
        for _ in range(2):
            assert (await ask("show", "1")) == {"id": "1"}


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
    ],
)
async def test_what_is_no_answer_is_a_lost_connection(raw: bytes) -> None:
    async with keeping((raw, CLOSE)) as server, AsyncClient(server.url, "key", retry_s=0) as client:
        with pytest.raises(ConnectionLost):
            await client.show("1")


@both
async def test_a_server_that_says_nothing_is_a_lost_connection(kind: type[Client | AsyncClient]) -> None:
    async with keeping(b" ") as server, asking(kind, server.url, timeout_s=0.1, retry_s=0) as ask:
        with pytest.raises(ConnectionLost):
            await ask("show", "1")
        assert server.connections == 1


async def test_a_call_that_was_cancelled_leaves_its_answer_to_nobody() -> None:
    async with keeping(b" ", ok(id="2")) as server, AsyncClient(server.url, "key") as client:
        waiting = asyncio.ensure_future(client.show("1"))
        await server.asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await client.bulk("2") == {"id": "2"}
        assert server.connections == 2


async def test_no_more_connections_than_asked_for() -> None:
    async with keeping(ok(id="1")) as server, AsyncClient(server.url, "key", connections=2) as client:
        await asyncio.gather(*(client.show("1") for _ in range(20)))
        assert (len(server.heads), server.connections) == (20, 2)


async def test_a_blocking_client_has_one_connection_for_each_thread_that_waits() -> None:
    async with keeping(ok(id="1")) as server:
        with Client(server.url, "key") as client:
            start = threading.Barrier(4)

            def ask() -> None:
                start.wait()
                for _ in range(5):
                    client.show("1")

            await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(4)))
        assert len(server.heads) == 20
        assert server.connections <= 4


async def test_a_forked_process_opens_connections_of_its_own() -> None:
    """Two processes on one connection would read each other's answers."""
    async with keeping(ok(id="1")) as server:
        command = [sys.executable, "-c", FORKS, server.url]  # a program without threads, which may fork
        ended = await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True)
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert (len(server.heads), server.connections) == (3, 2)


@both
async def test_a_list_is_read_as_it_is_sent(kind: type[Client | AsyncClient]) -> None:
    """In chunks, since a stream's length may not be known; and no part of it twice."""
    got = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"transfer-encoding: chunked" in (await reader.readuntil(b"\r\n\r\n")).lower()
        while size := int(await reader.readuntil(b"\r\n"), 16):
            got.extend(await reader.readexactly(size))
            await reader.readexactly(2)
        writer.write(ok(id="1"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    recipients = b'{"user_id": "ann"}\n' * 20_000
    async with server, asking(kind, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as ask:
        assert await ask("upload_recipients", "7", BytesIO(recipients)) == {"id": "1"}
    assert bytes(got) == recipients


@both
@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_a_server_that_is_busy_is_asked_again(kind: type[Client | AsyncClient], status: str) -> None:
    """Also where the answer is a proxy's, which says when in a header, or not at all."""
    for headers in ([], ["Retry-After: 0"], ["Retry-After: Fri, 31 Dec 2027 23:59:59 GMT"]):
        async with keeping(http(status, b"<html>", *headers), ok(id="1")) as server, asking(kind, server.url) as ask:
            assert (await ask("show", "1"))["id"] == "1"


@both
async def test_who_is_told_to_come_back_too_late_does_not_wait(kind: type[Client | AsyncClient]) -> None:
    async with keeping(http("503 Service Unavailable", b"", "Retry-After: 3600")) as server:
        async with asking(kind, server.url) as ask:
            with pytest.raises(ApiError) as refused:
                await ask("show", "1")
        assert refused.value.retry_after_s == 3600
        assert len(server.heads) == 1


@both
async def test_waiting_ends_with_the_end_of_the_notification_or_of_the_time(kind: type[Client | AsyncClient]) -> None:
    pending, sent = ok(notification={"finished_at": None}), ok(notification={"finished_at": "2026-01-31T09:00:00Z"})
    async with keeping(pending, pending, sent) as server, asking(kind, server.url) as ask:
        assert (await ask("wait", "1"))["notification"]["finished_at"] is not None
        assert len(server.heads) == 3
    async with keeping(pending) as server, asking(kind, server.url) as ask:
        assert (await ask("wait", "1", timeout_s=0))["notification"]["finished_at"] is None


@both
async def test_nothing_that_a_caller_gives_writes_a_header_or_a_line(kind: type[Client | AsyncClient]) -> None:
    async with keeping(ok(id="1")) as server, asking(kind, server.url) as ask:
        with pytest.raises(ValueError, match="Idempotency-Key"):
            await ask("send_bulk", {"title": "Hi"}, "a\r\nX: y")
        await ask("show", "1 HTTP/1.1\r\nX: y")
        assert b"X: y" not in server.heads[0]
    for url in (f"{server.url}/a b", f"{server.url}/a\x0bb", f"{server.url}/ü"):
        with pytest.raises(ValueError, match="path"):
            kind(url, None)


@both
async def test_a_password_in_the_url_is_in_no_error(kind: type[Client | AsyncClient]) -> None:
    async with asking(kind, "http://someone:secret@127.0.0.1:9", retry_s=0) as ask:
        with pytest.raises(ConnectionLost) as lost:
            await ask("show", "1")
    assert "secret" not in str(lost.value)
