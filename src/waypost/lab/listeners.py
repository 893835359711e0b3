"""The listening sockets: TLS with ALPN or plain, closed or failing its handshakes while the script says so."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from waypost.lab.framing import WireRules
from waypost.lab.http1 import Http1Service
from waypost.lab.reception import Reception
from waypost.lab.server import Http2Connection


class Listener:
    """A port of a gateway; without a TLS context it is plain."""

    def __init__(
        self, reception: Reception, rules: WireRules, context: ssl.SSLContext | None, *, host: str, port: int,
        http1: bool = False, speak: Callable[[], asyncio.Protocol] | None = None,
    ) -> None:  # fmt: skip
        """Create the port of a gateway that speaks HTTP, or *speak* makes the protocols of another language."""
        self.port = port
        self._reception, self._rules, self._context, self._host = reception, rules, context, host
        self._speak = speak
        self._http1 = Http1Service(reception) if http1 else None
        self._server: asyncio.Server | None = None
        self._transports: set[asyncio.Transport] = set()
        if context is not None:
            context.sni_callback = self._before_handshake

    async def open(self) -> None:
        """Listen; a port of 0 becomes a real one and stays the same when reopened."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Doorman(self), self._host, self.port, ssl=self._context, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Stop listening: new connections are refused, those that stand go on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def follow_script(self) -> None:
        """Open or close the port as the fault script now says."""
        refuses = self._reception.faults.refuses_connections(self._reception.gateway.name)
        if refuses:
            self.close()
        elif self._server is None:
            await self.open()

    async def stop(self) -> None:
        """Close the port and every connection."""
        self.close()
        if self._http1:
            await self._http1.stop()
        self.disconnect()

    def disconnect(self) -> None:
        """Break every connection that stands; the port stays open."""
        for transport in tuple(self._transports):
            with suppress(AttributeError):  # Python 3.11.2 has nothing to abort in one that was closed twice
                transport.abort()
        self._transports.clear()

    def admit(self, transport: asyncio.Transport) -> asyncio.Protocol:
        """Choose the protocol the client negotiated; without ALPN a gateway that can speaks HTTP/1.1."""
        self._transports = {standing for standing in self._transports if not standing.is_closing()}
        self._transports.add(transport)
        if self._speak is not None:
            return self._speak()
        tls = cast(ssl.SSLObject | None, transport.get_extra_info("ssl_object"))
        if self._http1 and (tls is None or tls.selected_alpn_protocol() != "h2"):
            return self._http1.protocol("http" if tls is None else "https")
        return Http2Connection(self._reception, self._rules)

    def _before_handshake(self, _tls: object, _name: str | None, _context: ssl.SSLContext) -> int | None:
        if self._reception.faults.fails_tls(self._reception.gateway.name):
            return ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE
        return None


class _Doorman(asyncio.Protocol):
    """A protocol that waits until TLS has settled what the connection will speak."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)
        protocol = self._listener.admit(stream)
        stream.set_protocol(protocol)
        protocol.connection_made(stream)
