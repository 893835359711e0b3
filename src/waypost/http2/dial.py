"""Opening a connection: names resolved anew, the first address that answers, a proxy's tunnel, TLS with ALPN."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from .alerts import alert_of
from .eyeballs import Address, connect_first, interleaved
from .proxy import Proxy, ProxyRefused, open_tunnel
from .settings import Origin

_TLS_GOODBYE_S: Final = 2.0
_NO_PROTOCOL: Final = "NO_APPLICATION_PROTOCOL"
P = TypeVar("P", bound=asyncio.Protocol)
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""A function from host and port to addresses, or DialError; what it leaves out is not connected to."""


class DialError(Exception):
    """The error that no connection could be made, explained for an operator; *alert* names the server's TLS alert."""

    def __init__(self, reason: str, alert: str = "") -> None:
        super().__init__(reason)
        self.alert = alert


class NotHttp2(DialError):
    """The error that the server is there, but agrees on no HTTP/2 (RFC 7301, RFC 9113 section 3.2)."""


async def addresses(host: str, port: int) -> Sequence[Address]:
    """Ask the system's resolver for the addresses of *host*; DialError."""
    try:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: a label too long or empty
        raise DialError(f"cannot resolve {host}: {getattr(error, 'strerror', None) or error}") from None


async def dial(origin: Origin, protocol: Callable[[], P], timeout_s: float, resolve: Resolve = addresses) -> P:
    """Connect *protocol* to *origin*, with HTTP/2 agreed on; DialError otherwise, or when it takes too long."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _over_tls(origin, protocol, await _reach(origin, resolve), timeout_s)
    except TimeoutError:
        raise DialError(f"no connection to {origin.host}:{origin.port} within {timeout_s:g} s") from None


async def _reach(origin: Origin, resolve: Resolve) -> socket.socket:
    """Open a byte stream to the origin, through its proxy if it has one."""
    proxy = origin.proxy
    if proxy is None:
        return await _tcp(origin.host, origin.port, resolve)
    if not proxy.by_address:
        return await _through(proxy, origin.host, origin.port)
    refused = DialError(f"{origin.host} has no address")
    for address in interleaved(await resolve(origin.host, origin.port)):
        try:
            return await _through(proxy, str(address[4][0]), origin.port)
        except DialError as error:
            refused = error
    raise refused


async def _through(proxy: Proxy, host: str, port: int) -> socket.socket:
    sock = await _tcp(proxy.host, proxy.port, addresses)
    try:
        await open_tunnel(asyncio.get_running_loop(), sock, proxy, host, port)
    except (ProxyRefused, OSError) as error:
        sock.close()
        raise DialError(f"proxy {proxy.host}:{proxy.port} on the way to {host}: {error}") from None
    except BaseException:
        sock.close()
        raise
    return sock


async def _tcp(host: str, port: int, resolve: Resolve) -> socket.socket:
    found = await resolve(host, port)
    try:
        return await connect_first(asyncio.get_running_loop(), interleaved(found))
    except OSError as error:
        raise DialError(f"cannot connect to {host}:{port}: {error.strerror or error}") from None


async def _over_tls(origin: Origin, protocol: Callable[[], P], sock: socket.socket, timeout_s: float) -> P:
    loop = asyncio.get_running_loop()
    try:
        if origin.tls is None:
            _, connected = await loop.create_connection(protocol, sock=sock)
            return connected
        transport, connected = await loop.create_connection(
            protocol,
            sock=sock,
            ssl=origin.tls,
            server_hostname=origin.server_name or origin.host,
            ssl_handshake_timeout=timeout_s,
            ssl_shutdown_timeout=_TLS_GOODBYE_S,
        )
    except ssl.SSLError as error:
        if _NO_PROTOCOL in (error.reason or ""):
            raise NotHttp2(f"{origin.host}:{origin.port} refuses HTTP/2: {error.reason}") from None
        raise DialError(f"TLS with {origin.host}:{origin.port}: {error.reason or error}", alert_of(error)) from None
    except OSError as error:
        raise DialError(f"TLS with {origin.host}:{origin.port}: {error.strerror or error}") from None
    agreed = transport.get_extra_info("ssl_object").selected_alpn_protocol()
    if agreed != "h2":
        transport.abort()
        raise NotHttp2(f"{origin.host}:{origin.port} does not speak HTTP/2: ALPN agreed on {agreed or 'nothing'}")
    return connected
