"""Whole requests: those of a hot route whose head and body came in one read. They are answered without ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.server import ServerState

RawHeaders = Sequence[tuple[bytes, bytes]]

_KEPT: Final = frozenset({b"keep-alive", b"Keep-Alive"})
_UNUSUAL: Final = frozenset({b"expect", b"upgrade", b"transfer-encoding"})
"""The fields of requests that uvicorn answers."""


class HotRoutes(Protocol):
    """The routes that answer whole requests."""

    limits: Mapping[bytes, int]
    """The most bytes of a body by what the request names, without any query."""

    async def answer(self, request: WholeRequest) -> None:
        """Answer a request, whatever it is."""
        ...


class Connection(Protocol):
    """The connection that a request came by."""

    client: tuple[str, int] | None
    flow: FlowControl
    transport: asyncio.Transport
    server_state: ServerState
    memory: dict[str, Any]

    def vouch(self) -> None:
        """Note that a known caller's request is in hand."""
        ...

    def on_response_complete(self) -> None:
        """Go on with what came after the request."""
        ...


class _Nobody:
    """The waiter of a request that nobody reads on from."""

    def set(self) -> None:
        """Wake nobody."""


class WholeRequest:
    """A request that came whole; it stands with its connection where uvicorn keeps a request and its answer."""

    __slots__ = (
        *("body", "disconnected", "fields", "headers", "keep_alive", "response_complete", "response_started"),
        *("_connection", "url"),
    )

    more_body = False
    scope = None
    message_event = _Nobody()

    def __init__(self, connection: Connection, url: bytes, headers: RawHeaders, fields: Mapping[bytes, bytes]) -> None:
        self.url = url
        self.headers = headers
        self.fields = fields
        """The headers by name: none came twice."""
        self.body = b""
        self.disconnected = False
        self.keep_alive = True
        self.response_started = False
        self.response_complete = False
        self._connection = connection

    @property
    def peer(self) -> str:
        """The address that the connection comes from; "" where it has none."""
        return (self._connection.client or ("",))[0]

    @property
    def memory(self) -> dict[str, Any]:
        """The memory that goes from one request of the connection to the next."""
        return self._connection.memory

    def vouch(self) -> None:
        """Note that its caller is known."""
        self._connection.vouch()

    async def respond(self, status: int, fields: bytes, body: bytes, *, closes: bool) -> None:
        """Write the answer in one piece, and go on with the connection; *fields* are lines as they are sent."""
        connection = self._connection
        if connection.flow.write_paused and not self.disconnected:
            await connection.flow.drain()
        if self.disconnected:
            return
        lines = [b"%b: %b\r\n" % field for field in connection.server_state.default_headers]
        end = b"\r\n" if self.keep_alive or closes else b"connection: close\r\n\r\n"
        self.response_started = self.response_complete = True
        connection.transport.write(b"".join((STATUS_LINE[status], *lines, fields, end, body)))
        if closes or not self.keep_alive:
            connection.transport.close()
        connection.on_response_complete()

    def give_up(self) -> None:
        """Close the connection, where no answer was given."""
        if not self.response_complete and not self.disconnected:
            self._connection.transport.close()


def may_be_whole(fields: Mapping[bytes, bytes], limit_bytes: int) -> bool:
    """Tell whether a request with these fields may be answered without ASGI; its body has *limit_bytes* at most."""
    length = fields.get(b"content-length", b"")
    if not length.isdigit() or len(length) > 9 or int(length) > limit_bytes:
        return False
    return fields.get(b"connection", b"keep-alive") in _KEPT and _UNUSUAL.isdisjoint(fields)
