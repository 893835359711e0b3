"""A network between a client and a server that a test can spoil: slow, silent, cut, or refusing."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from scripts.services.service import HOST, choose_ports

AT_ONCE: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends a reset, as a lost host's successor does, and not a polite end."""
CHUNK: Final = 1 << 16


class Questions:
    """What a client of PostgreSQL says, as far as it waits for an answer (PostgreSQL: Message Formats).

    Counted from what is said alone: a server may answer before the end of what is long has been sent.
    """

    def __init__(self) -> None:
        self._left = b""
        self._is_typed = False
        """Messages have no type before the session begins."""
        self._last = b""

    def say(self, data: bytes) -> int:
        """Take in what came next, and count the questions in it."""
        self._left += data
        begin, asked = 0, 0
        while (end := self._end_of(begin)) <= len(self._left):
            said = self._left[begin : begin + 1] if self._is_typed else _STARTUP
            self._is_typed = self._is_typed or self._left[begin + 4 : begin + 8] != _TLS_REQUEST
            asked += said in _ASKING and not (said == _FLUSH and self._last == _SYNC)
            self._last, begin = said, end
        self._left = self._left[begin:]
        return asked

    def _end_of(self, begin: int) -> int:
        at = begin + self._is_typed
        if len(self._left) < at + 4:
            return len(self._left) + 1
        return at + int.from_bytes(self._left[at : at + 4], "big")


_STARTUP = b"startup"
_TLS_REQUEST = (80877103).to_bytes(4, "big")
_SYNC, _FLUSH = b"S", b"H"
_ASKING = (_STARTUP, b"p", b"Q", _SYNC, _FLUSH, b"c", b"f")
"""A password, a query, Sync, Flush (which asks nothing more right after Sync), and the two ends of COPY."""


class Proxy:
    """Passes bytes from its port to a server; what it does with them may change at any time."""

    def __init__(self, host: str, port: int, own_port: int | None = None) -> None:
        """*own_port*: where it listens; a free one if None."""
        self.port: Final = own_port or choose_ports(1, None)[0]
        self.delay_s = 0.0
        """How long each piece of up to 64 KiB is held, in either direction."""
        self.is_counting = False
        """The server is PostgreSQL, and round trips are counted."""
        self.round_trips: Counter[int] = Counter()
        """How often the client of that port asked something of PostgreSQL that it waits for."""
        self.server = (host, port)
        """Where new connections go."""
        self._listener: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """Where clients connect: `host:port`."""
        return f"{HOST}:{self.port}"

    async def open(self) -> None:
        """Listen."""
        self._listener = await asyncio.start_server(self._accept, HOST, self.port)

    def move(self, host: str, port: int) -> None:
        """From now on new connections go to that server; those that there are end with a reset."""
        self.server = (host, port)
        self.cut()

    async def close(self) -> None:
        """Listen no longer, and end every connection."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._flowing.set()
            self.cut()
            await asyncio.gather(*self._connections)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Meanwhile connections stay open, new ones too, and no byte passes; afterwards all of them do."""
        self._flowing.clear()
        yield
        self._flowing.set()

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """Meanwhile existing connections are cut and new ones refused, as when the server has ended."""
        await self.close()
        yield
        await self.open()

    def cut(self) -> None:
        """Reset every connection; new ones are welcome."""
        for writer in self._ends:
            if not writer.is_closing():
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._connect(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward = await asyncio.open_connection(*self.server)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, onward[1]}
        self._ends |= ends
        client: int = writer.get_extra_info("peername")[1]
        await asyncio.gather(self._pump(reader, onward[1], client), self._pump(onward[0], writer, client))
        self._ends -= ends

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: int) -> None:
        """Pass one direction on until it ends; an end or a cut on one side is one on the other."""
        is_answer = writer.get_extra_info("peername")[1] == client
        questions = Questions()
        try:
            while data := await reader.read(CHUNK):
                if self.is_counting and not is_answer:
                    self.round_trips[client] += questions.say(data)
                await self._flowing.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)  # the slowness itself
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def before(host: str, port: int, own_port: int | None = None) -> AsyncIterator[Proxy]:
    """A proxy in front of that server for the time of the block."""
    proxy = Proxy(host, port, own_port)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
