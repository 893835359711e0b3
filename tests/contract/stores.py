"""A store under test: the ports of one engine over one set of data, and what a test may do to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from tests.contract.clock import StoppedClock
from tests.memory.audit import MemoryAudit
from tests.memory.balance import MemoryBalance
from tests.memory.bulk import MemoryBulk, MemoryBulkViews, MemoryOptOuts
from tests.memory.dedup import MemoryDedup
from tests.memory.devices import MemoryDevices
from tests.memory.erasures import MemoryErasures
from tests.memory.feed import MemoryFeed
from tests.memory.journal import MemoryJournal
from tests.memory.keys import MemoryKeys
from tests.memory.retention import MemoryRetention
from tests.memory.store import MemoryStore
from tests.memory.views import MemoryViews
from tests.memory.work import MemoryWork
from waypost.domain.time import MINUTE_MS
from waypost.ports.audit import Audit
from waypost.ports.balance import BalanceSheet
from waypost.ports.bulk import Bulk, BulkViews, OptOuts
from waypost.ports.dedup import Dedup
from waypost.ports.devices import Devices
from waypost.ports.erasure import Erasure, Erasures
from waypost.ports.feed import Feed
from waypost.ports.journal import Journal
from waypost.ports.keys import Keys
from waypost.ports.retention import Retention
from waypost.ports.views import Views
from waypost.ports.work import Work

LEASE_MS = MINUTE_MS
Strikes = Sequence[Callable[[Erasure], Awaitable[None]]]
"""What takes a user out of what features keep."""


class StoreUnderTest(Protocol):
    """One engine, its data, and its workers."""

    clock: StoppedClock

    @property
    def views(self) -> Views:
        """The reads."""
        ...

    @property
    def devices(self) -> Devices:
        """The registry."""
        ...

    @property
    def journal(self) -> Journal:
        """The journal."""
        ...

    @property
    def keys(self) -> Keys:
        """The API keys."""
        ...

    @property
    def dedup(self) -> Dedup:
        """The dedup keys."""
        ...

    @property
    def retention(self) -> Retention:
        """The end of what is old."""
        ...

    @property
    def bulk_views(self) -> BulkViews:
        """The reads of bulk jobs."""
        ...

    @property
    def feed(self) -> Feed:
        """The feeds of users."""
        ...

    @property
    def audit(self) -> Audit:
        """Who ordered what."""
        ...

    @property
    def balance(self) -> BalanceSheet:
        """Whether it adds up."""
        ...

    @property
    def opt_outs(self) -> OptOuts:
        """Who wants no bulk sends."""
        ...

    def erasures_of(self, worker: Work) -> Erasures:
        """Forgetting users, by this worker's process."""
        ...

    def strikes_of(self, worker: Work) -> Strikes:
        """What takes a user out of what features keep, by this worker's process."""
        ...

    def bulk_of(self, worker: Work) -> Bulk:
        """Bulk jobs, written by this worker's process."""
        ...

    async def open_workers(self, count: int) -> Sequence[Work]:
        """*count* workers that share all the work there is."""
        ...

    async def crash(self, worker: Work) -> None:
        """Let a worker be gone without cleaning up; what it leased may be taken over afterwards."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class MemoryUnderTest:
    """The memory adapters."""

    def __init__(self) -> None:
        self.clock = StoppedClock()
        self._store = MemoryStore()
        self.views = MemoryViews(self._store, self.clock)
        self.devices = MemoryDevices(self._store, self.clock)
        self.journal = MemoryJournal(self._store)
        self.keys = MemoryKeys(self._store)
        self.dedup = MemoryDedup(self._store, self.clock)
        self.retention = MemoryRetention(self._store, self.clock)
        self.bulk_views = MemoryBulkViews(self._store)
        self.feed = MemoryFeed(self._store, self.clock)
        self.audit = MemoryAudit(self._store)
        self.opt_outs = MemoryOptOuts(self._store)
        self.balance = MemoryBalance(self._store, self.clock)

    def erasures_of(self, worker: Work) -> Erasures:
        """See StoreUnderTest."""
        return MemoryErasures(self._store)

    def strikes_of(self, worker: Work) -> Strikes:
        """See StoreUnderTest; MemoryErasures takes the user out of everything."""
        return []

    def bulk_of(self, worker: Work) -> Bulk:
        """See StoreUnderTest."""
        return MemoryBulk(self._store)

    async def open_workers(self, count: int) -> Sequence[Work]:
        """See StoreUnderTest."""
        return [MemoryWork(self._store, self.clock) for _ in range(count)]

    async def crash(self, worker: Work) -> None:
        """A dead worker's leases end with their time."""
        self.clock.advance(LEASE_MS)

    async def close(self) -> None:
        """Nothing outlives the object."""
