"""Shares: each live worker owns its fair part of the shards, and hands over what it has too much of.

A critical worker owns the critical lane of all shards, and nothing else; while it works, the others leave that to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from waypost.domain.ids import SHARDS
from waypost.ports.ownership import CriticalPart, Ownership
from waypost.ports.peers import Peers
from waypost.runtime.worker_slots import WorkerSlots, WorkerState
from waypost.telemetry import Event, Metric, Telemetry

TOPIC = "shards"
"""The topic that tells when a worker came, went or let go of shards."""
_WORKING = (WorkerState.READY, WorkerState.DEGRADED)


class CriticalPlace(Struct, frozen=True):
    """The place of a process beside the critical worker."""

    slot: int | None = None
    """The slot of the critical worker; None where there is none."""
    is_here: bool = False
    """Whether this process is the critical worker."""


NOBODY = CriticalPlace()
"""The place where there is no critical worker."""


class Shares:
    """The part of the shards that one worker owns, kept fair."""

    def __init__(
        self,
        ownership: Ownership,
        worker_slots: WorkerSlots,
        peers: Peers,
        telemetry: Telemetry,
        on_taken: Callable[[], None],
        critical: CriticalPlace = NOBODY,
    ) -> None:
        self._ownership = ownership
        self._worker_slots = worker_slots
        self._peers = peers
        self._telemetry = telemetry
        self._on_taken = on_taken
        self._critical = critical
        self._has_joined = False
        self.leaves_critical = False
        """Whether another process carries the critical lane."""
        self._balancing = asyncio.Lock()
        self._leaving = False

    async def balance(self) -> None:
        """Take free shards up to a fair share; offer and release those above it."""
        async with self._balancing:
            await self._balance()

    async def leave(self) -> None:
        """Want no shards from now on: those in use are released one by one, once ``balance`` finds nothing leased."""
        self._leaving = True
        await self._ownership.leave()
        await self.balance()

    async def _balance(self) -> None:
        await self._claim_critical()
        if self._critical.is_here:
            await self._join()
        fair = 0 if self._leaving else self._fair_share()
        owned = self._ownership.owned()
        if owned < fair and (taken := await self._ownership.acquire(fair - owned)):
            self._telemetry.event(Event.SHARDS_TAKEN, count=taken, owned=owned + taken)
            self._on_taken()
            await self._claim_critical()  # with a shard comes its critical lane, which may be another's to carry
        excess = owned - self._ownership.offered() - fair
        if excess > 0:
            self._ownership.offer(excess)
        if self._ownership.offered() and (handed := await self._ownership.hand_over()):
            self._telemetry.event(Event.SHARDS_HANDED_OVER, count=handed, owned=owned - handed)
            self._peers.tell(TOPIC)
        self._telemetry.gauge(Metric.SHARDS, self._ownership.owned())

    async def _join(self) -> None:
        """Be known to those who share the work, without a share in it."""
        await self._ownership.attend()
        if not self._has_joined:
            self._has_joined = True
            self._on_taken()

    async def _claim_critical(self) -> None:
        """Carry the critical lane, or leave it to the critical worker while there is one that works."""
        had_left, self.leaves_critical = self.leaves_critical, self._is_left()
        part = CriticalPart.ALL if self._critical.is_here else CriticalPart.OWN
        if self._leaving or self.leaves_critical:
            part = CriticalPart.NONE
        moved = await self._ownership.claim_critical(part)
        if moved.taken or had_left > self.leaves_critical:
            self._on_taken()
        if moved.released:
            self._peers.tell(TOPIC)

    def _is_left(self) -> bool:
        """Tell whether the critical worker is another process, and works."""
        if self._critical.is_here or self._critical.slot is None:
            return False
        present = self._worker_slots.present()
        return any(each.slot == self._critical.slot and each.state in _WORKING for each in present)

    def _fair_share(self) -> int:
        """Return the fair number of shards, rounded up so that every shard has an owner.

        Workers that drain have none, and the critical worker has none.
        """
        if self._critical.is_here:
            return 0
        present = [each for each in self._worker_slots.present() if each.slot != self._critical.slot]
        working = sum(each.state is not WorkerState.DRAINING for each in present)
        return -(-SHARDS // max(1, self._ownership.sharers() or working))
