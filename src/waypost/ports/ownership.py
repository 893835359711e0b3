"""The part of the work that this process owns, on stacks where ownership is the lease."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, Protocol


class CriticalPart(Enum):
    """The part of the critical lane that a process goes for."""

    ALL = auto()
    """That of every shard."""
    OWN = auto()
    """That of the shards that it owns."""
    NONE = auto()


class CriticalMoved(NamedTuple):
    """The numbers of shards whose critical lane was taken, and let go of."""

    taken: int
    released: int


class Ownership(Protocol):
    """The shards and roles of a process, each behind a lock that becomes free when its owner dies."""

    def owned(self) -> int:
        """Count the shards that this process owns."""
        ...

    def sharers(self) -> int | None:
        """Count the processes that share the shards; None where only those of this machine do."""
        ...

    async def attend(self) -> None:
        """Join the others and know of them, without a share."""
        ...

    async def acquire(self, wanted: int) -> int:
        """Take at most *wanted* free shards; return how many it got. Their open work becomes leasable."""
        ...

    async def leave(self) -> None:
        """Leave those who share the shards; what is owned stays so until it is handed over."""
        ...

    def offer(self, n: int) -> None:
        """Lease nothing more from *n* of the owned shards, so that they can be handed over."""
        ...

    async def hand_over(self) -> int:
        """Release the offered shards that hold no leased item; return how many it was."""
        ...

    def offered(self) -> int:
        """Count the offered shards that are still held."""
        ...

    async def claim_critical(self, part: CriticalPart) -> CriticalMoved:
        """Go for *part* of the critical lane: take what of it is free, and let go of the rest once nothing is leased.

        Nothing moves where the lane is not owned apart from the others.
        """
        ...

    async def take_role(self, name: str) -> bool:
        """Own *name* (``sweep``, ``report``), now or still; False while another process does."""
        ...
