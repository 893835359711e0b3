"""Retention: deleting what is long over."""

from __future__ import annotations

from typing import Final, Protocol

from waypost.domain.time import MINUTE_MS, Instant

HIDDEN_FOR_MS: Final = 10 * MINUTE_MS
"""How long something is hidden at least before it is deleted: its reader may restore what was hidden by mistake."""


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
        """Delete at most *n* finished notifications that their readers hid ``HIDDEN_FOR_MS`` ago; how many it was.

        One of which something is still to be told, to a webhook or to other devices, stays until it was told.
        """
        ...
