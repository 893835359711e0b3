"""The end of the server: a client that never finishes is cut off when the time is over."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from tests.adapters.rest.service import Service
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.entrypoints.rest.settings import RestSettings

pytestmark = pytest.mark.asyncio

TRICKLE = b"POST /v1/notifications HTTP/1.1\r\nhost: here\r\ncontent-length: 1000\r\n\r\n "
SILENT_HEAD = b"POST /v1/notifications HTTP/1.1\r\nhost:"


@pytest.mark.parametrize("sent", [TRICKLE, SILENT_HEAD, b""], ids=["body", "head", "nothing"])
async def test_a_client_that_never_finishes_is_cut_off_at_the_end(sent: bytes) -> None:
    """``stop`` waits for it, and cancelled aborts its connection and ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        server = ApiServer(Service().app, listener, serve_options(RestSettings()))
        await server.start()
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET /health/live HTTP/1.1\r\nhost: here\r\n\r\n" + sent)
        await reader.readuntil(b"\r\n\r\n")
        stopping = asyncio.create_task(server.stop())
        if sent is TRICKLE:
            await asyncio.sleep(0)
            stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        with contextlib.suppress(ConnectionResetError):
            assert not (await reader.read(10_000)).startswith(b"HTTP/1.1 2")
        assert not server._server.server_state.connections
        writer.close()
