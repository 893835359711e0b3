"""Several doors as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from waypost.ports.lifecycle import Lifecycle


class Doors:
    """Opened one after the other, closed all at once (fulfils ports.lifecycle.Lifecycle)."""

    def __init__(self, doors: Sequence[Lifecycle]) -> None:
        self._doors = doors

    async def start(self) -> None:
        """Open each; where one cannot be, the worker stops all."""
        for door in self._doors:
            await door.start()

    async def stop(self) -> None:
        """Close all."""
        await asyncio.gather(*(door.stop() for door in self._doors))
