"""Sweep: what is over is cleared away, page by page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from waypost.domain.time import Instant
from waypost.ports.dedup import Dedup
from waypost.ports.journal import Journal
from waypost.ports.retention import Retention

PAGE = 500


class Swept(Struct, frozen=True):
    """What went."""

    journal_rows: int
    dedup_tables: int
    notifications: int


async def sweep(
    journal: Journal, readers: Sequence[str], dedup: Dedup, retention: Retention, keep_after: Instant
) -> Swept:
    """Drop what every reader of the journal has passed, dedup windows that are over, and what finished long ago."""
    return Swept(
        await _drop_read(journal, readers),
        await dedup.drop_over(),
        await _drop_old(retention, keep_after),
    )


async def _drop_read(journal: Journal, readers: Sequence[str]) -> int:
    behind = min([await journal.position(reader) for reader in readers], default=0)
    dropped = page = await journal.drop_before(behind + 1, PAGE)
    while page == PAGE:
        page = await journal.drop_before(behind + 1, PAGE)
        dropped += page
    return dropped


async def _drop_old(retention: Retention, keep_after: Instant) -> int:
    before = await retention.drop_whole(keep_after)
    dropped = page = await retention.drop_before(before, PAGE)
    while page == PAGE:
        page = await retention.drop_before(before, PAGE)
        dropped += page
    return dropped
