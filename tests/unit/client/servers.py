"""Servers of a few lines, for what a client makes of connections."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain, repeat

CLOSE = b""
"""In place of an answer: the connection is closed."""


class Seen:
    """What a server saw."""

    def __init__(self) -> None:
        self.url = ""
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.asked = asyncio.Event()
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []


def http(status: str, body: bytes, *headers: str) -> bytes:
    """Write one whole answer."""
    more = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def ok(**body: object) -> bytes:
    """Write an answer with a JSON object."""
    return http("200 OK", json.dumps(body).encode())


@asynccontextmanager
async def keeping(*raws: bytes | Sequence[bytes], tls: ssl.SSLContext | None = None) -> AsyncIterator[Seen]:
    """Answer each request with the next of *raws*, the last for ever, on connections that stay open.

    Of several parts, the last is CLOSE where the connection ends after the answer.
    """
    seen = Seen()
    turns = chain(raws, repeat(raws[-1]))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        seen.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                seen.heads.append(head)
                seen.asked.set()
                length = re.search(rb"(?i)content-length: (\d+)", head)
                seen.bodies.append(await reader.readexactly(int(length[1])) if length else b"")
                parts = next(turns)
                for part in [parts] if isinstance(parts, bytes) else parts:
                    if part is CLOSE:
                        return
                    writer.write(part)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    seen.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        server.close()
        for writer in seen.writers:
            writer.close()
