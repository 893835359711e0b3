"""Connections through an HTTP proxy (RFC 9110, section 9.3.6): CONNECT, then the tunnel is as good as a connection."""

import asyncio
import base64
import socket
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

_LONGEST_ANSWER_BYTES: Final = 8192
_HTTP_PORT: Final = 80


@dataclass(frozen=True)
class Proxy:
    """An HTTP/1.1 proxy, spoken to in clear text; *authorization* is what goes into Proxy-Authorization.

    It resolves names, unless it is asked *by_address*: then names are resolved on this side, and it is asked for what
    was found.
    """

    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)
    by_address: bool = False


class ProxyRefused(Exception):
    """The error that the proxy did not open the tunnel; the text says why and holds no credentials."""


def proxy_of(url: str) -> Proxy:
    """Parse the proxy of ``http://[user:password@]host[:port]``; ValueError for anything else."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be http://host:port or http://user:password@host:port")
    authorization = None
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(login.encode()).decode("ascii")
    return Proxy(parts.hostname, parts.port or _HTTP_PORT, authorization)


async def open_tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Turn *sock*, connected to *proxy*, into a tunnel to *host*; ProxyRefused, or OSError if the connection breaks."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.authorization is not None:
        request += f"Proxy-Authorization: {proxy.authorization}\r\n"
    await loop.sock_sendall(sock, f"{request}\r\n".encode("latin-1"))
    answer = bytearray()
    # Byte by byte: what follows the head belongs to the tunnel, and a server may speak first.
    while not answer.endswith(b"\r\n\r\n"):
        byte = await loop.sock_recv(sock, 1)
        if not byte or len(answer) >= _LONGEST_ANSWER_BYTES:
            raise ProxyRefused("closed the connection" if not byte else "answers without end")
        answer += byte
    status = answer.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or not status[0].startswith(b"HTTP/1.") or not status[1].isdigit():
        raise ProxyRefused("does not speak HTTP/1.1")
    if not status[1].startswith(b"2"):
        raise ProxyRefused(f"answers {status[1].decode('ascii')}")
