"""Limits that several takers share."""

from __future__ import annotations

from typing import Protocol

from waypost.domain.limits import Granted, Limit, Wait


class Limiter(Protocol):
    """A limiter: however many take at once, together they never get more than a limit allows."""

    async def take(self, name: str, limit: Limit, n: int = 1) -> Granted | Wait:
        """Take *n* of what goes by *name*, all or nothing, without waiting.

        One name has one limit; a change of it counts from the next call. More than its capacity is a ValueError.
        """
        ...
