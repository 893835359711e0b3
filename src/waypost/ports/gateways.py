"""The processes that hold live connections, on whatever machine, and who is held where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NewType, Protocol

from waypost.domain.ids import AppId, UserId

GatewayId = NewType("GatewayId", str)
User = tuple[AppId, UserId]


class Gateways(Protocol):
    """The register of gateways. Unavailable where it is away: then nothing is known of anybody.

    A gateway that dies is told nothing any more, and leaves no entry. One that was taken for dead, or whose entries
    were lost, notices that itself: it registers anew, and takes it that it was not told everything.
    """

    async def start(self, take: Callable[[bytes], None], missed: Callable[[], None]) -> None:
        """Register this process; *take* is called with each message to it, and *missed* after some may be lost."""
        ...

    async def stop(self) -> None:
        """Remove this process and its entries."""
        ...

    async def hold(self, users: Sequence[User]) -> None:
        """Hold *users* here: whoever asks after the end of this finds it; while the register is away, later."""
        ...

    def release(self, user: User) -> None:
        """Hold a user here no longer."""
        ...

    async def holders(self, users: Sequence[User]) -> Mapping[User, Sequence[GatewayId]]:
        """Return the other gateways that hold each of *users*."""
        ...

    async def tell(self, messages: Sequence[tuple[GatewayId, bytes]]) -> list[bool]:
        """Tell gateways; say of each message whether its gateway is alive."""
        ...

    async def forget(self, gone: Sequence[tuple[User, GatewayId]]) -> None:
        """Remove entries of gateways that are not alive."""
        ...
