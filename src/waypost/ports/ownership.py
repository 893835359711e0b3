"""Which part of the work this process owns, on stacks where ownership is the lease."""

from __future__ import annotations

from typing import Protocol


class Ownership(Protocol):
    """Shards and roles, each behind a lock that becomes free when its owner dies."""

    def owned(self) -> int:
        """How many shards are this process's."""
        ...

    def sharers(self) -> int | None:
        """How many processes share the shards; None where those of this machine are all."""
        ...

    async def attend(self) -> None:
        """Be known to the others, and know of them, without a share."""
        ...

    async def acquire(self, wanted: int) -> int:
        """Take at most *wanted* free shards; how many it got. Their open work becomes leasable."""
        ...

    async def leave(self) -> None:
        """Be no longer one of those who share the shards; what is owned stays so until it is handed over."""
        ...

    def offer(self, n: int) -> None:
        """Lease nothing more from *n* of the owned shards, so that they can be handed over."""
        ...

    async def hand_over(self) -> int:
        """Let go of the offered shards that hold no leased item; how many it was."""
        ...

    def offered(self) -> int:
        """How many offered shards are still held."""
        ...

    async def take_role(self, name: str) -> bool:
        """Own *name* (``sweep``, ``report``), now or still; False while another process does."""
        ...
