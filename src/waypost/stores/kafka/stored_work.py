"""The work whose truth is the store, asked for beside the log's, which waits for no answer that is late."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from waypost.domain.errors import Unavailable
from waypost.domain.notification import Lane
from waypost.domain.time import Instant
from waypost.ports.work import Lease, Settled, Work


class StoredWork:
    """The store's own work of one worker; where the store is away there is none."""

    patience_s = 0.25
    """Seconds that a look for what is due waits for the store, where no other look waits already."""
    at_once = 32
    """The most looks for what is due that the store has not answered; more are not asked."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._asked: dict[Lane, asyncio.Task[Lease]] = {}
        """The lease of each lane that was asked for and not taken yet."""
        self._rest: dict[Lane, Lease] = {}
        """The items for which there was no room when their lease was taken."""
        self._due: dict[frozenset[str], asyncio.Task[int | None]] = {}
        """Each look for what is due whose answer nobody had yet, by the conditions that it lifts."""
        self._named: asyncio.Task[frozenset[str]] | None = None
        """The look for conditions whose answer nobody had yet."""

    def is_asked(self, lane: Lane) -> bool:
        """Tell whether a lease is asked for that was not taken yet."""
        return lane in self._asked

    def ask(self, lane: Lane, n: int, until: Instant) -> asyncio.Task[Lease]:
        """Ask for a lease of *lane*, unless one is asked for: wait for it, or take it another time."""
        if lane not in self._asked:
            self._asked[lane] = asyncio.create_task(self._lease(lane, n, until))
        return self._asked[lane]

    async def take(self, lane: Lane, n: int, until: Instant) -> Lease | None:
        """Return at most *n* items that the store has answered with and that are still this worker's."""
        lease = self._rest.pop(lane, None) or self._answered(lane)
        if lease is None or not lease.items:
            return None
        if not await self._work.extend(lease, until):
            await self._work.settle(lease, [Settled(item.notification, given_back=True) for item in lease.items])
            return None
        if rest := lease.items[n:]:
            self._rest[lane] = Lease(lease.token, lane, rest)
        return Lease(lease.token, lane, lease.items[:n])

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int]) -> int | None:
        """Release what is due and count it; None while the store has not answered, and where it is away.

        A late answer is for the next look that lifts the same. That nothing came is no answer then: something may have
        been parked since.
        """
        question = frozenset(lifted)
        if question in self._due:
            return (self._due.pop(question).result() or None) if self._due[question].done() else None
        is_slow = any(not asked.done() for asked in self._due.values())
        if len(self._due) >= self.at_once:
            self._due = {each: asked for each, asked in self._due.items() if not asked.done()}
        if len(self._due) >= self.at_once:
            return None
        asked = self._due[question] = asyncio.create_task(self._promote(now, n, lifted))
        await asyncio.wait({asked}, timeout=0 if is_slow else self.patience_s)
        return self._due.pop(question).result() if asked.done() else None

    async def conditions(self) -> frozenset[str]:
        """Name the conditions that something waits for: none before the store has answered, or while it is away.

        A late answer is for whoever asks next.
        """
        if self._named is None:
            self._named = asyncio.create_task(self._name())
            await asyncio.wait({self._named}, timeout=self.patience_s)
        if not self._named.done():
            return frozenset()
        named, self._named = self._named, None
        return named.result()

    async def stop(self) -> None:
        """Ask no longer; what was leased and not taken becomes free with this worker's end."""
        named = () if self._named is None else (self._named,)
        waited: list[asyncio.Task[Any]] = [*self._asked.values(), *self._due.values(), *named]
        for asked in waited:
            asked.cancel()
        await asyncio.gather(*waited, return_exceptions=True)

    def _answered(self, lane: Lane) -> Lease | None:
        asked = self._asked.get(lane)
        if asked is None or not asked.done():
            return None
        del self._asked[lane]
        return asked.result()

    async def _name(self) -> frozenset[str]:
        try:
            return await self._work.conditions()
        except Unavailable:
            return frozenset()

    async def _promote(self, now: Instant, n: int, lifted: Mapping[str, int]) -> int | None:
        try:
            return await self._work.promote_due(now, n, lifted)
        except Unavailable:
            return None

    async def _lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        try:
            return await self._work.lease(lane, n, until)
        except Unavailable:
            return Lease(0, lane, ())
