"""The work on an open store of PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from waypost.domain.notification import Lane
from waypost.ports.clock import Clock
from waypost.stores.sql.claims.held import Comparison, Held
from waypost.stores.sql.claims.lease import Part
from waypost.stores.sql.claims.work import ClaimedWork
from waypost.stores.sql.outbox.relaying import Relay
from waypost.stores.sql.store import Store


class Opened(Struct, frozen=True):
    """The opened parts in one process."""

    work: ClaimedWork
    routes: ClaimedWork | None
    """The work for routing, where that and sending are apart. The other one then leases what is to be sent."""

    def listen(self, tell: Callable[[Lane], None]) -> None:
        """Call *tell* with lanes of which something became leasable by itself."""
        for each in (self.work, self.routes):
            if each is not None:
                each.on_arrival = tell


@asynccontextmanager
async def opened_claims(
    store: Store, clock: Clock, *, apart: bool, outbox: Relay | None = None
) -> AsyncIterator[Opened]:
    """Open work that is compared with what the store says, as long as it is open."""
    held = Held()
    routes = ClaimedWork(store, clock, held, Part.WHOLE, outbox) if apart else None
    work = ClaimedWork(store, clock, held, Part.TARGETS if apart else Part.ANY, outbox)
    comparison = Comparison(store.database, store.member, held, lambda: work.tell(Lane))
    comparison.start()
    try:
        yield Opened(work, routes)
    finally:
        await comparison.stop()
