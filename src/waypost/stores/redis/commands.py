"""Commands to Redis: a pipeline of commands goes in, their replies come out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

from waypost.domain.errors import Unavailable

Command = tuple[str | bytes | int | float, ...]
Reply = Any
"""A reply as hiredis reads RESP2: bytes, int, None, or a list of these."""


class RedisAway(Unavailable):
    """The error of no useful answer: not connected, too late, or an error reply; what was sent may have been done.

    Of an error reply it tells the first word alone: the rest may quote what was sent.
    """


class Redis(Protocol):
    """A Redis of whatever shape; whoever uses it knows nothing of connections."""

    async def start(self) -> None:
        """Try to connect, once, and go on trying; a Redis that is away does not fail the start."""
        ...

    async def execute(self, commands: Sequence[Command]) -> list[Reply]:
        """Send *commands* as one pipeline and give their replies, in order; not a transaction.

        RedisAway, at once while no connection can be made, and for any error reply: the other commands were done.
        """
        ...

    async def stop(self) -> None:
        """Close every connection; what is under way ends with RedisAway."""
        ...


class Script:
    """A Lua script, called by its digest; ``execute`` sends its text to a server that does not know it yet."""

    def __init__(self, source: str) -> None:
        self._digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        _SOURCES[self._digest] = source

    def __call__(self, keys: Sequence[str | bytes], *arguments: str | bytes | int | float) -> Command:
        """Build the command that runs it on *keys*; in a cluster they share one hash tag."""
        return ("EVALSHA", self._digest, len(keys), *keys, *arguments)


_SOURCES: dict[Any, str] = {}


def told(command: Command) -> Command:
    """Build the same call of a script, with its text in place of the digest that the server did not know."""
    return ("EVAL", _SOURCES[command[1]], *command[2:])
