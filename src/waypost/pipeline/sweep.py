"""Sweep: finished and outdated data is deleted, page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from waypost.domain.errors import Unavailable
from waypost.domain.time import Instant
from waypost.ports.dedup import Dedup
from waypost.ports.journal import Journal
from waypost.ports.retention import Retention

PAGE = 500


class Stores(Struct, frozen=True):
    """The stores that are swept."""

    journal: Journal
    readers: Sequence[str]
    dedup: Dedup
    retention: Retention
    beside: Mapping[str, Callable[[], Awaitable[int]]] = {}
    """Functions that drop a page of a feature's old rows, by the feature's name."""


class Swept(Struct, frozen=True):
    """The numbers of what was deleted."""

    journal_rows: int
    dedup_tables: int
    notifications: int
    failed: tuple[tuple[str, str], ...] = ()
    """The stores that could not be swept, and the kind of error."""


async def sweep(stores: Stores, keep_after: Instant) -> Swept:
    """Drop what every reader of the journal has passed, dedup windows that are over, and what finished long ago.

    Each by itself: where one cannot be cleared away, the others are all the same.
    """
    parts: dict[str, Callable[[], Awaitable[int]]] = {
        "journal": lambda: _drop_read(stores.journal, stores.readers),
        "dedup": stores.dedup.drop_over,
        "notifications": lambda: _drop_old(stores.retention, keep_after),
    }
    parts |= {name: partial(_by_pages, drop) for name, drop in stores.beside.items()}
    went = dict.fromkeys(parts, 0)
    failed: list[tuple[str, str]] = []
    for name, drop in parts.items():
        try:
            went[name] = await drop()
        except Unavailable:
            continue  # the store reports it itself; the others may use another store
        except Exception as surprise:  # noqa: BLE001 - whatever is wrong with one must not stop the others
            failed.append((name, type(surprise).__name__))
    return Swept(went["journal"], went["dedup"], went["notifications"], tuple(failed))


async def _drop_read(journal: Journal, readers: Sequence[str]) -> int:
    behind = min([await journal.position(reader) for reader in readers], default=0)
    return await _by_pages(lambda: journal.drop_before(behind + 1, PAGE))


async def _drop_old(retention: Retention, keep_after: Instant) -> int:
    before = await retention.drop_whole(keep_after)
    return await _by_pages(lambda: retention.drop_before(before, PAGE))


async def _by_pages(drop: Callable[[], Awaitable[int]]) -> int:
    dropped = page = await drop()
    while page == PAGE:
        page = await drop()
        dropped += page
    return dropped
