"""Ports for servers that are started later, at an address that others are told before."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

_HELD: Final[list[socket.socket]] = []


def reserved_port() -> int:
    """A port of this machine's own addresses that nobody else is given until this process ends.

    It is held by a socket that is bound and does not listen: the system gives it to no connection and to nobody who
    asks for any port, and a server that reuses addresses, as servers do, may listen there, also more than once.
    """
    port = _hold(socket.AF_INET, "127.0.0.1", 0)
    with contextlib.suppress(OSError):  # there is no IPv6, or somebody has it there: servers take the other address
        _hold(socket.AF_INET6, "::1", port)
    return port


def _hold(family: socket.AddressFamily, host: str, port: int) -> int:
    held = socket.socket(family)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host, port))
    except OSError:
        held.close()
        raise
    _HELD.append(held)
    return int(held.getsockname()[1])
