"""Opening a connection: names resolved anew, addresses tried in turn, TLS with ALPN."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, TypeVar

from .settings import Origin

_TLS_GOODBYE_S: Final = 2.0
P = TypeVar("P", bound=asyncio.Protocol)


class DialError(Exception):
    """No connection could be made; the text says why, for an operator."""


async def dial(origin: Origin, protocol: Callable[[], P], timeout_s: float) -> P:
    """Connect *protocol* to *origin*, with HTTP/2 agreed on; DialError otherwise, or when it takes too long."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _over_tls(origin, protocol, await _tcp(origin))
    except TimeoutError:
        raise DialError(f"no connection to {origin.host}:{origin.port} within {timeout_s:g} s") from None


async def _tcp(origin: Origin) -> socket.socket:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DialError(f"cannot resolve {origin.host}: {error.strerror or error}") from None
    failure = "no address"
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failure = error.strerror or str(error)
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise DialError(f"cannot connect to {origin.host}:{origin.port}: {failure}")


async def _over_tls(origin: Origin, protocol: Callable[[], P], sock: socket.socket) -> P:
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
            ssl_shutdown_timeout=_TLS_GOODBYE_S,
        )
    except ssl.SSLError as error:
        raise DialError(f"TLS with {origin.host}:{origin.port}: {error.reason or error}") from None
    except OSError as error:
        raise DialError(f"TLS with {origin.host}:{origin.port}: {error.strerror or error}") from None
    agreed = transport.get_extra_info("ssl_object").selected_alpn_protocol()
    if agreed != "h2":
        transport.abort()
        raise DialError(f"{origin.host}:{origin.port} does not speak HTTP/2: ALPN agreed on {agreed or 'nothing'}")
    return connected
