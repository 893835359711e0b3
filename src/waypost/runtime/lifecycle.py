"""A group of parts that begin and end as one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from waypost.ports.lifecycle import Lifecycle


class LifecycleGroup:
    """A group that starts each part in order and stops all at once (fulfils ports.lifecycle.Lifecycle)."""

    def __init__(self, parts: Sequence[Lifecycle]) -> None:
        self._parts = parts

    async def start(self) -> None:
        """Start each part; where one cannot, those before it are stopped by whoever stops this."""
        for part in self._parts:
            await part.start()

    async def stop(self) -> None:
        """Stop all parts."""
        await asyncio.gather(*(part.stop() for part in self._parts))
