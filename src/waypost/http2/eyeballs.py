"""Connecting to the first address that answers (RFC 8305, "Happy Eyeballs")."""

import asyncio
import socket
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

# RFC 8305, section 8: recommended time between the beginnings of two attempts.
ATTEMPT_DELAY_S: Final = 0.25

# What getaddrinfo gives: family, type, protocol, canonical name, address.
Address = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


def interleaved(found: Sequence[Address]) -> list[Address]:
    """Order the addresses so that families take turns, beginning with the first; else as the resolver has them.

    The resolver has sorted them already by what this host can reach (RFC 6724; RFC 8305, section 4).
    """
    first = [address for address in found if address[0] == found[0][0]]
    others = [address for address in found if address[0] != found[0][0]]
    return [address for pair in zip_longest(first, others) for address in pair if address is not None]


async def connect_first(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[Address], delay_s: float = ATTEMPT_DELAY_S
) -> socket.socket:
    """Connect a socket to one of *addresses*; the OSError of the last attempt if none takes it.

    Each attempt begins *delay_s* after the one before it, or as soon as that has failed; the others are given up when
    one has succeeded.
    """
    left = list(reversed(addresses))
    attempts: set[asyncio.Task[socket.socket]] = set()
    failure: OSError | None = None
    try:
        while left or attempts:
            if left:
                attempts.add(loop.create_task(_connect(loop, left.pop())))
            ended, _ = await asyncio.wait(
                attempts, timeout=delay_s if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for attempt in ended:
                error = attempt.exception()
                if error is None:
                    attempts.discard(attempt)
                    return attempt.result()
                attempts.discard(attempt)
                if not isinstance(error, OSError):
                    raise error
                failure = error
    finally:
        await _give_up(attempts)
    raise failure or OSError("no address")


async def _give_up(attempts: set[asyncio.Task[socket.socket]]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for ended in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(ended, socket.socket):
            ended.close()


async def _connect(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    family, kind, protocol, _, name = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, name)
    except BaseException:
        sock.close()
        raise
    return sock
