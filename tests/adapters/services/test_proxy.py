"""The spoilt network does to a client what each of its faults says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import pytest
import pytest_asyncio

from tests.proxy import Proxy, before

pytestmark = pytest.mark.asyncio
SOON_S = 0.05
Connect = Callable[[], Awaitable["Client"]]


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy before a server that echoes lines."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(line)
        writer.close()

    echoing = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with echoing, before(*echoing.sockets[0].getsockname()) as opened:
        yield opened


class Client:
    """A connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self) -> bytes:
        """A line there and back."""
        self._writer.write(b"line\n")
        return await self.answer()

    async def answer(self) -> bytes:
        """What comes back; nothing at the connection's end."""
        return await self._reader.readline()

    async def close(self) -> None:
        """Say goodbye."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


@pytest_asyncio.fixture
async def connect(proxy: Proxy) -> AsyncIterator[Connect]:
    """Makes connections, which end with the test."""
    async with AsyncExitStack() as connections:

        async def connect() -> Client:
            client = Client(*await asyncio.open_connection("127.0.0.1", proxy.port))
            connections.push_async_callback(client.close)
            return client

        yield connect


async def test_it_passes_bytes_and_may_hold_each_piece(proxy: Proxy, connect: Connect) -> None:
    """A delay counts in either direction."""
    client = await connect()
    assert await client.ask() == b"line\n"
    proxy.delay_s = SOON_S
    began = asyncio.get_running_loop().time()
    assert await client.ask() == b"line\n"
    assert asyncio.get_running_loop().time() - began >= 2 * SOON_S


async def test_stalled_nothing_comes_and_afterwards_all_of_it(proxy: Proxy, connect: Connect) -> None:
    """Connections, new ones too, stay open without an answer."""
    clients = [await connect()]
    assert await clients[0].ask() == b"line\n"
    with proxy.stalled():
        clients.append(await connect())
        answers = [asyncio.create_task(client.ask()) for client in clients]
        assert not (await asyncio.wait(answers, timeout=SOON_S))[0]
    assert await asyncio.gather(*answers) == [b"line\n", b"line\n"]


async def test_cut_connections_are_reset_and_new_ones_welcome(proxy: Proxy, connect: Connect) -> None:
    """As when the way to the server was lost for a moment."""
    client = await connect()
    assert await client.ask() == b"line\n"
    proxy.cut()
    with pytest.raises(ConnectionResetError):
        await client.answer()
    assert await (await connect()).ask() == b"line\n"


async def test_refusing_it_looks_like_a_server_that_ended(proxy: Proxy, connect: Connect) -> None:
    """Afterwards it listens where it did."""
    client = await connect()
    assert await client.ask() == b"line\n"
    async with proxy.refusing():
        with pytest.raises(ConnectionResetError):
            await client.answer()
        with pytest.raises(ConnectionRefusedError):
            await connect()
    assert await (await connect()).ask() == b"line\n"
