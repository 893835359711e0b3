"""What happens between two requests of a change: to see it end there, or somebody come between.

It reaches into the adapter, so that no hook for tests is needed in the product.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from waypost.stores.cassandra.link import CassandraLink

Act = Callable[[], Awaitable[None]]
REQUESTS = ("execute", "batch")


class Killed(BaseException):
    """The process ended here: whatever it did before is there, and nothing comes after it."""


async def killed() -> None:
    """End here."""
    raise Killed


class Steps:
    """Calls *act* once, before the *n*-th request that is made of the cluster by a link from now on."""

    def __init__(self, n: int, act: Act) -> None:
        self._left = n
        self._act = act

    @property
    def came(self) -> bool:
        """Whether there were as many requests."""
        return self._left <= 0

    @asynccontextmanager
    async def counted(self, link: CassandraLink) -> AsyncIterator[None]:
        """Count."""
        session, _ = await link.made()
        for name in REQUESTS:
            setattr(session, name, self._counting(getattr(session, name)))
        yield
        for name in REQUESTS:
            delattr(session, name)

    def _counting(self, request: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counting(*arguments: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                await self._act()
            return await request(*arguments)

        return counting
