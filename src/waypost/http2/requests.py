"""What connections carry, as those see it who look after connections."""

from typing import Protocol

from .connection import Connection


class Requests(Protocol):
    """The requests of a pool."""

    def settle(self, connection: Connection) -> None:
        """Deal with the streams in `ended` and `refused`."""

    def dispatch(self) -> None:
        """Streams may be free: send what waits."""

    def unreachable(self, reason: str) -> None:
        """An attempt to connect failed and there is no connection: what waits must not wait on."""

    def waiting(self) -> int:
        """How many requests wait for a stream."""
