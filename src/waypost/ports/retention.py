"""Retention: deleting what is long over."""

from __future__ import annotations

from typing import Protocol

from waypost.domain.time import Instant


class Retention(Protocol):
    """The retention of finished notifications, which deletes them with content and receipts; open ones stay."""

    async def drop_whole(self, before: Instant) -> Instant:
        """Drop at once what can be of what is over *before*; give that before which the rest goes by ``drop_before``.

        That is *before* itself, or where months lie apart the beginning of its month.
        """
        ...

    async def drop_before(self, before: Instant, n: int) -> int:
        """Delete at most *n* notifications made and finished before *before*, oldest first; how many it was."""
        ...

    async def drop_hidden(self, n: int) -> int:
        """Delete at most *n* finished notifications that their readers hid; how many it was."""
        ...
