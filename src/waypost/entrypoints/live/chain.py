"""The chain of entries: what one process tells others of those that it brought into feeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.ports.feed import NewEntry

MESSAGE_BYTES: Final = 5_000
"""The most bytes of a message to other processes, whatever carries it."""

Told = tuple[AppId, UserId, NotificationId, int]
"""An entry as others are told of it: whose, which, and its place."""


class Brought(Struct, frozen=True, array_like=True):
    """A link of the chain of entries: it follows the link that ended at the place *after*, 0 where that is unknown.

    One without entries repeats where the chain ends.
    """

    after: int
    until: int
    entries: tuple[Told, ...]


class Chain:
    """The links that one listener is told by this process."""

    def __init__(self) -> None:
        self._until = 0

    def links(self, entries: Sequence[NewEntry]) -> list[Brought]:
        """Make the links for *entries*, each of which fits into one message."""
        told = [(each.app, each.user_id, each.notification_id, each.place) for each in entries]
        return [self._link(part) for part in _parts(told)]

    def end(self) -> Brought | None:
        """Repeat where the chain ends, by which a link that was lost is noticed; None where it has not begun."""
        return Brought(self._until, self._until, ()) if self._until else None

    def _link(self, part: tuple[Told, ...]) -> Brought:
        link = Brought(self._until, part[-1][3], part)
        self._until = link.until
        return link


def _parts(entries: Sequence[Told]) -> Iterable[tuple[Told, ...]]:
    """Divide *entries* so that each part fits into one message."""
    part: list[Told] = []
    size = 0
    for entry in entries:
        length = len(encode(entry))
        if part and size + length > MESSAGE_BYTES:
            yield tuple(part)
            part, size = [], 0
        size += length
        part.append(entry)
    if part:
        yield tuple(part)


encode = msgspec.msgpack.Encoder().encode
