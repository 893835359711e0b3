"""Parts that have a beginning and an end."""

from __future__ import annotations

from typing import Protocol


class Lifecycle(Protocol):
    """A part that is started once and stopped once; ``stop`` after a failed or missing ``start`` is harmless."""

    async def start(self) -> None:
        """Become usable, or raise and leave nothing behind."""
        ...

    async def stop(self) -> None:
        """Finish what is in hand and let go of every resource; cancelled, let go at once, whatever is in hand."""
        ...
