"""HTTP/1.1 for the gateways that speak it beside HTTP/2: the token endpoint and push services."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from waypost.lab.exchange import ClientConnection, Request
from waypost.lab.faults import BlackHole, SlowReader
from waypost.lab.reception import Reception

_MAX_BODY_BYTES = 256 * 1024


class Http1Service:
    """A server of every HTTP/1.1 connection of one gateway, with aiohttp's own protocol."""

    def __init__(self, reception: Reception) -> None:
        self._reception = reception
        self._connections: dict[asyncio.BaseProtocol, ClientConnection] = {}
        self._server = web.Server(self._serve, access_log=None)

    def protocol(self, scheme: str) -> asyncio.Protocol:
        """Make the protocol object of one new connection."""
        inner = self._server()
        connection = self._connections[inner] = self._reception.connect("http/1.1", scheme=scheme)

        def ended() -> None:
            del self._connections[inner]
            self._reception.disconnect(connection)

        return _Watched(inner, ended)

    async def stop(self) -> None:
        """Close every connection."""
        await self._server.shutdown(timeout=0.1)

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        body = await incoming.content.read(_MAX_BODY_BYTES)
        connection = self._connections[incoming.protocol]
        headers = {":authority": incoming.headers.get("Host", ""), ":method": incoming.method}
        headers[":scheme"] = connection.scheme
        repeated: list[str] = []
        for raw_name, value in incoming.headers.items():
            name = raw_name.lower()
            if name in headers:
                repeated.append(name)
            headers[name] = value
        request = Request(
            method=incoming.method, path=incoming.raw_path, headers=headers, repeated=tuple(repeated), body=body,
            connection=connection,
        )  # fmt: skip
        reply = self._reception.receive(request)
        first = reply.first
        if reply.turn is not None:
            come = asyncio.get_running_loop().create_future()
            reply.turn.then = come.set_result
            reply = await come
        pause_s = sum(change.pause_ms / 1000 for change in first if isinstance(change, SlowReader))
        if reply.delay_s + pause_s:
            await asyncio.sleep(reply.delay_s + pause_s)
        if reply.answer is None:
            if isinstance(reply.instead, BlackHole):
                await asyncio.Event().wait()
            if incoming.transport is not None:  # GOAWAY and RST have no HTTP/1.1 form: the connection goes
                incoming.transport.abort()
            return web.Response(status=503)
        answered = web.Response(status=reply.answer.status, headers=dict(reply.answer.headers), body=reply.answer.body)
        if reply.ends:
            answered.force_close()
        return answered


class _Watched(asyncio.Protocol):
    """The protocol of aiohttp, which also tells when the connection has ended."""

    def __init__(self, inner: asyncio.Protocol, ended: Callable[[], None]) -> None:
        self._inner, self._ended = inner, ended
        self.connection_made = inner.connection_made  # type: ignore[method-assign]  # handed on untouched
        self.data_received = inner.data_received  # type: ignore[method-assign]  # as above
        self.eof_received = inner.eof_received  # type: ignore[method-assign]  # as above
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]  # as above
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]  # as above

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)
        self._ended()
