"""The journal: the changes of each accept and settle, for the reporting stages that tail it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import DeviceId
from waypost.domain.moves import ActionTaken, Moved


class JournalRow(Struct, frozen=True):
    """The changes of one transaction, and their position; buttons that were pressed have a row of their own."""

    position: int
    moves: tuple[Moved, ...]
    actions: tuple[ActionTaken, ...] = ()


class Journal(Protocol):
    """The log of changes; each reader reads on from a position of its own, at least once."""

    async def read(self, after: int, n: int, naming: Collection[DeviceId] | None = None) -> list[JournalRow]:
        """Return at most *n* rows after a position, in order.

        Where *naming* is given, a row that names none of these may come without its moves.
        """
        ...

    async def position(self, reader: str) -> int:
        """Return the position of *reader*; 0 for a new one."""
        ...

    async def advance(self, reader: str, position: int) -> None:
        """Store the position of *reader*, unless it stands further on: a process that stood still says so late."""
        ...

    async def drop_before(self, position: int, n: int) -> int:
        """Delete at most *n* rows before a position; return how many it was."""
        ...
