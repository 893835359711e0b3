"""The HTTP server of one worker: uvicorn on a socket that somebody else opened."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

DATE_S = 1.0
"""Seconds between two changes of the date in answers."""
LOOK_S = 0.05
"""Seconds until a connection that came while the others were aborted is aborted, too."""


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that leaves the process's signals alone (the worker decides) and tells when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self._told_to_end = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self.up.set()

    async def main_loop(self) -> None:
        """Renew the date of answers each second until told to end; the library's own looks ten times as often."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATE_S):
                    await self._told_to_end.wait()

    def end(self) -> None:
        """Accept nothing more; ``serve`` ends once all is answered."""
        self.should_exit = True
        self._told_to_end.set()

    def cut(self) -> None:
        """Abort every connection and what is done for it; ``serve`` ends without waiting for anybody."""
        self.force_exit = True
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for task in list(self.server_state.tasks):
            task.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


class ApiServer:
    """A server of an ASGI application from ``start`` to ``stop`` (fulfils ports.lifecycle.Lifecycle)."""

    def __init__(self, app: Any, listener: socket.socket, options: dict[str, Any]) -> None:
        self._listener = listener
        self._server = _Uvicorn(uvicorn.Config(app, **options))
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Accept connections."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        up = asyncio.create_task(self._server.up.wait())
        await asyncio.wait((self._serving, up), return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            up.cancel()
            self._serving.result()

    async def stop(self) -> None:
        """Accept nothing more, and let the requests in hand be answered; cancelled, abort those that are not."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        self._server.end()
        try:
            await asyncio.shield(serving)
        finally:
            while not serving.done():
                self._server.cut()
                await asyncio.wait([serving], timeout=LOOK_S)
