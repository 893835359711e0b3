"""Shares: each live worker owns its fair part of the shards, and hands over what it has too much of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from waypost.domain.ids import SHARDS
from waypost.ports.ownership import Ownership
from waypost.ports.peers import Peers
from waypost.runtime.worker_slots import WorkerSlots, WorkerState
from waypost.telemetry import Event, Metric, Telemetry

TOPIC = "shards"
"""The topic that tells when a worker came, went or let go of shards."""


class Shares:
    """The part of the shards that one worker owns, kept fair."""

    def __init__(
        self,
        ownership: Ownership,
        worker_slots: WorkerSlots,
        peers: Peers,
        telemetry: Telemetry,
        on_taken: Callable[[], None],
    ) -> None:
        self._ownership = ownership
        self._worker_slots = worker_slots
        self._peers = peers
        self._telemetry = telemetry
        self._on_taken = on_taken
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
        fair = 0 if self._leaving else self._fair_share()
        owned = self._ownership.owned()
        if owned < fair and (taken := await self._ownership.acquire(fair - owned)):
            self._telemetry.event(Event.SHARDS_TAKEN, count=taken, owned=owned + taken)
            self._on_taken()
        excess = owned - self._ownership.offered() - fair
        if excess > 0:
            self._ownership.offer(excess)
        if self._ownership.offered() and (handed := await self._ownership.hand_over()):
            self._telemetry.event(Event.SHARDS_HANDED_OVER, count=handed, owned=owned - handed)
            self._peers.tell(TOPIC)
        self._telemetry.gauge(Metric.SHARDS, self._ownership.owned())

    def _fair_share(self) -> int:
        """Return the fair number of shards, rounded up so that every shard has an owner; draining workers have none."""
        working = sum(each.state is not WorkerState.DRAINING for each in self._worker_slots.present())
        return -(-SHARDS // max(1, self._ownership.sharers() or working))
