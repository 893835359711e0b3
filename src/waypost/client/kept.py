"""Connections of the blocking client that wait for its next call."""

from __future__ import annotations

import os
import selectors
import weakref
from collections import deque
from collections.abc import Iterable
from http.client import HTTPConnection
from typing import Protocol


class HasFileno(Protocol):
    """A socket, or what stands for one."""

    def fileno(self) -> int: ...


class Kept:
    """The open connections of one client that no call uses; they end with it, and belong to one process alone."""

    def __init__(self) -> None:
        self._idle: deque[HTTPConnection] = deque()
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._idle)

    def take(self) -> HTTPConnection | None:
        """Take the one used last that the server has not closed; None where there is none."""
        if self._process != os.getpid():  # after a fork these are the other's, which goes on with them
            self.close()
            self._process = os.getpid()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if not is_readable(connection.sock):
                return connection
            connection.close()
        return None

    def put(self, connection: HTTPConnection) -> None:
        """Keep *connection*, unless its last answer ended it."""
        if connection.sock is not None:
            self._idle.append(connection)

    def close(self) -> None:
        """Close all."""
        connections = list(self._idle)
        self._idle.clear()
        _close_all(connections)


def _close_all(connections: Iterable[HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def is_readable(connected: HasFileno) -> bool:
    """Tell whether something came unasked, bytes or an end: what comes next would not be the answer to a request."""
    with selectors.DefaultSelector() as selector:
        selector.register(connected, selectors.EVENT_READ)
        return bool(selector.select(timeout=0))
