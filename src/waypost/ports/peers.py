"""The other workers on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Answerer = Callable[[bytes], bytes | None]
"""A function called on the event loop with a question's body; None is silence."""


PROCESS_ENDED = "ended"
"""The topic by which the supervisor tells that it saw a process end; the body is its number."""


class Peers(Protocol):
    """The other workers of one supervisor, reached by small messages; with one worker there is nobody to talk to."""

    def on(self, topic: str, answer: Answerer) -> None:
        """Call *answer* with every message of *topic*; what it returns goes back to an asker."""
        ...

    def tell(self, topic: str, body: bytes = b"") -> None:
        """Send to every other worker, without waiting; a message to a frozen or dead one may be lost."""
        ...

    async def ask(self, topic: str, body: bytes, timeout_s: float) -> list[bytes]:
        """Ask every other worker; return the answers that came in time."""
        ...
