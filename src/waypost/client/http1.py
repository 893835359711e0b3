"""HTTP/1.1 over asyncio's streams, as much of it as the client of one server needs (RFC 9112)."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple, Self

from .kept import is_readable

LONGEST_HEAD = 65_536
_CHUNK = 65_536
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) (\d{3})(?: .*)?")


class Answer(NamedTuple):
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class BrokenAnswer(Exception):
    """The error that what came is no answer."""


class Connection:
    """A connection to a server: one request, then its answer, at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.is_kept = True
        """Whether it may take another request."""

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None) -> Self:
        """Connect; OSError where that fails."""
        return cls(*await asyncio.open_connection(host, port, ssl=tls, limit=LONGEST_HEAD))

    async def close(self) -> None:
        """Close it without another word to the server."""
        self.is_kept = False
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def is_silent(self) -> bool:
        """Tell whether it is open and nothing came unasked: only then is what comes next an answer."""
        if self._writer.transport.is_closing() or is_readable(self._writer.get_extra_info("socket")):
            return False
        try:
            async with asyncio.timeout(0):  # what the loop has read already
                await self._reader.read(1)
        except TimeoutError:
            return True
        except OSError:
            pass
        return False

    async def ask(self, head: bytes, body: bytes | BinaryIO | None) -> Answer:
        """Send a request and read its answer; OSError, EOFError or BrokenAnswer where there is none."""
        self._writer.write(head)
        if body is None or isinstance(body, bytes):
            self._writer.write(body or b"")
            return await self._answer()
        sending, reading = asyncio.ensure_future(self._send_file(body)), asyncio.ensure_future(self._answer())
        try:
            await asyncio.wait((sending, reading), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            else:
                self.is_kept = False  # it was answered before all of it was read
            return await reading
        finally:
            for task in (sending, reading):
                task.cancel()
            await asyncio.gather(sending, reading, return_exceptions=True)

    async def _send_file(self, file: BinaryIO) -> None:
        with contextlib.suppress(ConnectionError):  # the answer may be there all the same
            while part := await asyncio.to_thread(file.read, _CHUNK):
                self._writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                await self._writer.drain()
            self._writer.write(b"0\r\n\r\n")

    async def _answer(self) -> Answer:
        try:
            return await self._read_answer()
        except asyncio.LimitOverrunError as endless:
            raise BrokenAnswer("a line or head without end") from endless

    async def _read_answer(self) -> Answer:
        status, is_kept, headers = await self._read_head()
        while status < 200:
            status, is_kept, headers = await self._read_head()
        length, coding = headers.get("content-length"), headers.get("transfer-encoding")
        if status in (204, 304):
            body = b""
        elif coding is not None:
            body = await self._read_chunks(coding)
        elif length is not None:
            if not re.fullmatch("[0-9]{1,15}", length):
                raise BrokenAnswer("a length that is none")
            body = await self._reader.readexactly(int(length))
        else:
            body, is_kept = await self._reader.read(), False
        self.is_kept = self.is_kept and is_kept
        return Answer(status, headers, body)

    async def _read_head(self) -> tuple[int, bool, dict[str, str]]:
        """Read the status, whether the connection is kept afterwards, and the headers."""
        text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = text[:-4].split("\r\n")
        status_line = _STATUS_LINE.fullmatch(first)
        if status_line is None:
            raise BrokenAnswer("no status line")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BrokenAnswer("no header")
            name, value = name.lower(), value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        is_kept = status_line[1] == "1" and "close" not in headers.get("connection", "").lower()
        return int(status_line[2]), is_kept, headers

    async def _read_chunks(self, coding: str) -> bytes:
        if coding.lower() != "chunked":
            raise BrokenAnswer("a transfer coding that was not asked for")
        parts = []
        while size := _chunk_size(await self._reader.readuntil(b"\r\n")):
            parts.append(await self._reader.readexactly(size))
            if await self._reader.readexactly(2) != b"\r\n":
                raise BrokenAnswer("a chunk longer than it says")
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers say nothing that is needed
        return b"".join(parts)


def _chunk_size(line: bytes) -> int:
    digits = re.match(rb"[0-9a-fA-F]{1,15}(?=[ \t]*(;|\r\n))", line)
    if digits is None:
        raise BrokenAnswer("a chunk without a size")
    return int(digits[0], 16)
