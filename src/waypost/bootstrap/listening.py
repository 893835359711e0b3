"""The ports of a service, taken before any worker starts."""

from __future__ import annotations

import contextlib
import errno
import resource
import socket
import time

from waypost.domain.errors import ConfigurationError
from waypost.runtime.listening import Listen

BACKLOG = 2048
"""Connections that the kernel queues until they are accepted."""
PORT_PATIENCE_S = 3.0
"""How long a taken port may take to become free."""


def listening(listen: Listen) -> socket.socket:
    """Listen, for workers that inherit the socket."""
    listener = _bound("listen", listen)
    listener.listen(BACKLOG)
    listener.set_inheritable(False)
    return listener


def allow_open_files() -> None:
    """Let this process and those it starts open as many files as they may: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # a system may say "without limit" and mean another
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def reserved(key: str, listen: Listen) -> socket.socket:
    """Hold a port without listening, for workers that each listen on it; nobody else may have it."""
    with _bound(key, listen) as alone:
        taken = address_of(alone)
    return _bound(key, taken, shared=True)


def sharing(key: str, listen: Listen) -> socket.socket:
    """Listen on a port that is reserved for all workers."""
    listener = _bound(key, listen, shared=True)
    listener.listen(BACKLOG)
    return listener


def address_of(bound: socket.socket) -> Listen:
    """Return where a socket really listens: the address of a name, the port that was free."""
    host, port = bound.getsockname()[:2]
    return Listen(host, port)


def _bound(key: str, listen: Listen, *, shared: bool = False) -> socket.socket:
    """Take a port; one that is taken may be held by a worker that is just ending with its dead supervisor."""
    patient_until_s = time.monotonic() + PORT_PATIENCE_S
    while True:
        try:
            return _bound_now(listen, shared)
        except OSError as failed:
            if failed.errno != errno.EADDRINUSE or time.monotonic() > patient_until_s:
                raise ConfigurationError(key, f"cannot listen on {listen}: {failed.strerror}") from failed
        time.sleep(0.05)  # the system does not tell when a port becomes free


def _bound_now(listen: Listen, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((listen.host, listen.port))
    except OSError:
        bound.close()
        raise
    return bound
