"""A stream of jobs that is its producers' own: whoever works it off reads, notes the state of open ones, finishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct


class HandedJob(Struct, frozen=True):
    """An entry handed to one consumer, until it is finished or nothing was heard of it for too long."""

    entry: str
    """The id in the stream."""
    fields: Mapping[bytes, bytes]
    deliveries: int = 1
    """The number of times it was handed out, this one included."""
    note: bytes | None = None
    """The note that its last consumer kept of it."""


class Jobs(Protocol):
    """A consumer of one group of a stream. An exception (``Unavailable``) means that nobody knows whether the call was
    done, and everything is safe to repeat.
    """

    async def take(self, n: int) -> list[HandedJob]:
        """Take at most *n* entries: first those another consumer was silent about, then fresh ones. Never waits."""
        ...

    async def keep(self, notes: Mapping[str, bytes]) -> None:
        """Replace the note of each entry that is still this consumer's, for its next consumer."""
        ...

    async def hold(self, entries: Sequence[str]) -> set[str]:
        """Say that they are being worked on; which of them are still this consumer's.

        What was read and not yet given by ``take`` is said as well, with or without *entries*.
        """
        ...

    async def others(self, entries: Sequence[str]) -> dict[str, bytes | None]:
        """Find which of *entries* are in another consumer's hands, each with its note."""
        ...

    async def finish(self, entries: Sequence[str]) -> set[str]:
        """Acknowledge entries that are still this consumer's, and forget their notes; return which they were."""
        ...
