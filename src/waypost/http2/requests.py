"""The requests on connections, as seen by the code that looks after connections."""

from typing import Protocol

from .link import Link


class Requests(Protocol):
    """The requests of a pool."""

    def settle(self, link: Link) -> None:
        """Settle the streams in `ended` and `refused` of its connection, and send what waits for them."""

    def dispatch(self) -> None:
        """Send what waits, since streams may be free."""

    def unreachable(self, reason: str) -> None:
        """Refuse what waits, since an attempt to connect failed and there is no connection."""

    def waiting(self) -> int:
        """Return how many requests wait for a stream."""
