"""A server that does exactly what a test tells it, over real TLS: one script for each connection in turn."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from hyperframe.frame import DataFrame, Frame, HeadersFrame

from tests.unit.http2 import peer
from waypost.http2.frames import PREFACE


class Served:
    """One connection, as its server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.seen: list[Any] = []

    def say(self, *pieces: bytes) -> None:
        """Write frames."""
        self.writer.write(b"".join(pieces))

    async def greet(self, **settings: int) -> None:
        """Read the preface and send SETTINGS."""
        assert await self.reader.readexactly(len(PREFACE)) == PREFACE
        self.say(peer.settings(**settings))

    async def frame(self) -> Any:
        """The next frame."""
        frame, length = Frame.parse_frame_header(memoryview(await self.reader.readexactly(9)))
        frame.parse_body(memoryview(await self.reader.readexactly(length)))
        self.seen.append(frame)
        return frame

    async def until(self, kind: type[Frame], flag: str = "") -> Any:
        """Read on to a frame of a kind."""
        while True:
            frame = await self.frame()
            if isinstance(frame, kind) and (not flag or flag in frame.flags):
                return frame

    async def request(self) -> int:
        """Read on to the end of a whole request; its stream."""
        while True:
            frame = await self.frame()
            if isinstance(frame, HeadersFrame | DataFrame) and "END_STREAM" in frame.flags:
                return frame.stream_id

    async def answer_all(self) -> None:
        """Answer until the client closes."""
        while True:
            self.say(peer.answer(await self.request()))

    async def read_to_end(self) -> None:
        """Read on, saying nothing, until the client closes."""
        while True:
            await self.frame()

    def cut(self) -> None:
        """End the connection without a word."""
        self.writer.transport.abort()


Script = Callable[[Served], Awaitable[None]]


async def ordinary(served: Served) -> None:
    """What a friendly server does."""
    await served.greet(MAX_CONCURRENT_STREAMS=100)
    await served.answer_all()


@contextlib.asynccontextmanager
async def scripted(context: ssl.SSLContext | None, *scripts: Script, port: int = 0) -> AsyncIterator[int]:
    """Serve each connection by the next script, the later ones by the last; a script that fails, fails the test."""
    tasks: list[asyncio.Task[None]] = []
    failures: list[Exception] = []
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        script = scripts[min(count, len(scripts) - 1)]
        count += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        try:
            await script(Served(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client closed, or the test is over
        except Exception as failure:  # noqa: BLE001 - it is reported by the test's own task
            failures.append(failure)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not failures, failures
