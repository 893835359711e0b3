"""The stack on an open store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from waypost.adapters.sql.relayed.adopt import adopt
from waypost.adapters.sql.relayed.held import Comparison, Held
from waypost.adapters.sql.relayed.lease import Part
from waypost.adapters.sql.relayed.relaying import Relay, Topics
from waypost.adapters.sql.relayed.work import RelayedWork
from waypost.adapters.sql.settings import OutboxSettings
from waypost.adapters.sql.store import Store
from waypost.domain.notification import Lane
from waypost.ports.clock import Clock


class Opened(Struct, frozen=True):
    """What one process has of the stack."""

    work: RelayedWork
    routes: RelayedWork | None
    """Where routing and sending are apart: what leases for routing. The other one then leases what is to be sent."""
    relay: Relay


@asynccontextmanager
async def opened_relayed(
    store: Store, topics: Topics, settings: OutboxSettings, clock: Clock, *, relays: bool
) -> AsyncIterator[Opened]:
    """Work that *topics* carry, and its relay; not *relays*, others publish what is accepted here."""
    await adopt(store.database)
    relay = Relay(store, topics, settings, clock)
    held = Held()
    if topics.notifications is topics.deliveries:
        opened = Opened(RelayedWork(store, topics.deliveries, relay, clock, held), None, relay)
    else:
        routes = RelayedWork(store, topics.notifications, relay, clock, held, Part.WHOLE)
        opened = Opened(RelayedWork(store, topics.deliveries, relay, clock, held, Part.TARGETS), routes, relay)

    def freed() -> None:
        for each in (opened.work, opened.routes):
            if each is not None:
                each.freed()
        relay.tell(Lane)

    comparison = Comparison(store.database, store.member, held, freed)
    comparison.start()
    if relays:
        relay.start()
    try:
        yield opened
    finally:
        await comparison.stop()
        await relay.stop()
