"""A TLS server that refuses its clients as real ones do: by an alert. asyncio's, which the lab uses, just hangs up."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def refusing(context: ssl.SSLContext) -> Iterator[int]:
    """Listen on a port of 127.0.0.1, shake hands with each client in turn, and hang up when it has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=_serve, args=(listening, context))
        serving.start()
        try:
            yield listening.getsockname()[1]
        finally:  # a thread that is left to accept would keep a test that failed from ending
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(listening: socket.socket, context: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                _refuse(connection, context)


def _refuse(connection: socket.socket, context: ssl.SSLContext) -> None:
    raw = connection.dup()  # what is left when TLS has given up
    with raw:
        with contextlib.suppress(ssl.SSLError):
            context.wrap_socket(connection, server_side=True).close()
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65_536):
            pass  # read on, so that the alert is not lost to a reset
