"""Sources of other programs' notifications: a stream or a topic that a group reads together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

PAYLOAD = b"payload"
"""The field of a message that has one value and no fields of its own."""
OWN_KEY = b"idempotency_key"
"""The field by which a producer marks messages that say the same."""
TRACE = b"traceparent"
"""The field that says from where in a trace a message comes (W3C Trace Context)."""


class Foreign(Struct, frozen=True):
    """A message of another system, as its producer wrote it."""

    place: str
    """The place in its stream: the same however often and by whomever it is read, and no other's ever."""
    fields: Mapping[bytes, bytes]


class RefusedMessage(Struct, frozen=True):
    """A message that cannot be turned into a notification."""

    message: Foreign
    code: str
    why: str
    """The reason, for people; holds nothing of what the message said."""


class ReadingLag(Struct, frozen=True):
    """The distance of reading behind writing; None is not known."""

    waiting: int | None
    """Messages that nobody has read yet."""
    held: int | None
    """Messages that were read, and are neither acknowledged nor buried."""


class Source(Protocol):
    """A member of a group: each message goes to one member at a time, at least once, until it is acknowledged.

    A member that is gone, or silent for too long with what it has, loses that to the others. Nothing is acknowledged
    but by ``ack`` and ``bury``. An exception (``Unavailable``) means that nobody knows whether the call was done;
    everything is safe to repeat. A source that is away does not fail the start.
    """

    @property
    def stream(self) -> str:
        """The name of the stream that is read; with a message's place it names that message."""
        ...

    async def look(self) -> str:
        """Describe what is there to be read from, without reading; Unavailable where that cannot be done."""
        ...

    async def start(self) -> None:
        """Join the group, now or when it can be."""
        ...

    async def read(self, n: int) -> list[Foreign]:
        """Take at most *n* messages; waits a moment for the first, and gives none where none comes."""
        ...

    async def ack(self, messages: Sequence[Foreign]) -> None:
        """Acknowledge messages: they are not handed out again."""
        ...

    async def bury(self, refused: Sequence[RefusedMessage]) -> None:
        """Store messages, whole and with the reason, as dead letters, and do not hand them out again."""
        ...

    async def behind(self) -> ReadingLag:
        """Measure how much there is still to read."""
        ...

    async def stop(self) -> None:
        """Leave the group: what was read here and is not acknowledged is for the others at once."""
        ...
