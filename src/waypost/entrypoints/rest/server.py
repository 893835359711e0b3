"""The HTTP server of one worker: uvicorn on a socket that somebody else opened."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn


class _Uvicorn(uvicorn.Server):
    """uvicorn, leaving the process's signals alone: the worker decides when it stops."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


class ApiServer:
    """Serves an ASGI application from ``start`` to ``stop`` (fulfils ports.lifecycle.Lifecycle)."""

    def __init__(self, app: Any, listener: socket.socket, options: dict[str, Any]) -> None:
        self._listener = listener
        self._server = _Uvicorn(uvicorn.Config(app, **options))
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Accept connections."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.005)  # uvicorn tells by a flag alone
        if self._serving.done():
            self._serving.result()

    async def stop(self) -> None:
        """Accept nothing more, and let the requests in hand be answered."""
        if self._serving is not None:
            self._server.should_exit = True
            await self._serving
            self._serving = None
