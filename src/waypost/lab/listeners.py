"""The listening sockets: TLS with ALPN or plain, closed or failing its handshakes while the script says so."""

import asyncio
import socket
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
        self._held: socket.socket | None = None
        """Keeps the port while it is closed: another program's connection could have it by then."""
        self._transports: set[asyncio.Transport] = set()
        if context is not None:
            context.sni_callback = self._before_handshake

    async def open(self) -> None:
        """Listen; a port of 0 becomes a real one and stays the same when reopened."""
        loop = asyncio.get_running_loop()
        if self._held is None:
            self._held = _bound(self._host, self.port)
            self.port = self._held.getsockname()[1]
        self._server = await loop.create_server(
            lambda: _Doorman(self), self._host, self.port, ssl=self._context, backlog=1024
        )

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
        if self._held is not None:
            self._held.close()
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


def _bound(host: str, port: int) -> socket.socket:
    """Bind a socket that does not listen: a server may listen on its port, and without one connections are refused."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    held = socket.socket(family, kind)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(address)
    except OSError:
        held.close()
        raise
    return held


class _Doorman(asyncio.Protocol):
    """A protocol that waits until TLS has settled what the connection will speak."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)
        protocol = self._listener.admit(stream)
        stream.set_protocol(protocol)
        protocol.connection_made(stream)
