"""Tail: tell a reader of the journal what is new since its stored position, at least once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec import Struct

from waypost.domain.ids import DeviceId
from waypost.ports.journal import Journal, JournalRow

PAGE = 200


class Reader(Struct, frozen=True):
    """A reader who is told every row of the journal, in order."""

    name: str
    """The name under which its position is stored, so that it stays the same."""
    take: Callable[[Sequence[JournalRow]], Awaitable[None]]
    """A function that takes a page; if it raises, the same page comes again."""
    is_prompt: bool = False
    """Whether it is told as soon as something is written, since somebody waits for it."""
    naming: Collection[DeviceId] | None = None
    """The devices whose moves alone are looked for; None where all moves are."""
    keeps_position: bool = False
    """Whether *take* stores its position itself, with what it writes: so that each row counts once."""


async def tail(journal: Journal, reader: Reader) -> int:
    """Tell *reader* one page and store its position; return how many rows it was."""
    rows = await journal.read(await journal.position(reader.name), PAGE, reader.naming)
    if rows:
        await reader.take(rows)
        if not reader.keeps_position:
            await journal.advance(reader.name, rows[-1].position)
    return len(rows)
