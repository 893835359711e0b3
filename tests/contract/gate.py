"""A point where a test holds a thread."""

from __future__ import annotations

import asyncio
import threading

_LONG_S = 30.0


class Gate:
    """Holds a thread at a point until it is opened."""

    def __init__(self) -> None:
        self._reached, self._open = threading.Event(), threading.Event()

    def wait(self) -> None:
        """Stop here until ``open``."""
        self._reached.set()
        assert self._open.wait(_LONG_S)

    async def reached(self) -> None:
        """Return once a thread waits."""
        assert await asyncio.to_thread(self._reached.wait, _LONG_S)

    def open(self) -> None:
        """Let every thread pass."""
        self._open.set()
