"""Sweep: what is over is cleared away, page by page."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.ports.journal import Journal

PAGE = 1_000


async def drop_read_journal(journal: Journal, readers: Sequence[str]) -> int:
    """Drop what every reader has passed, a page at a time; how many rows went."""
    behind = min([await journal.position(reader) for reader in readers], default=0)
    dropped = 0
    while page := await journal.drop_before(behind + 1, PAGE):
        dropped += page
        if page < PAGE:
            break
    return dropped
