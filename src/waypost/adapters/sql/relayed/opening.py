"""The stack on an open store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waypost.adapters.sql.relayed.adopt import adopt
from waypost.adapters.sql.relayed.relaying import Relay
from waypost.adapters.sql.relayed.work import RelayedWork
from waypost.adapters.sql.settings import OutboxSettings
from waypost.adapters.sql.store import Store
from waypost.ports.broker import Broker
from waypost.ports.clock import Clock


@asynccontextmanager
async def opened_relayed(
    store: Store, broker: Broker, settings: OutboxSettings, clock: Clock, *, relays: bool
) -> AsyncIterator[tuple[RelayedWork, Relay]]:
    """Work that *broker* carries, and its relay; not *relays*, others publish what is accepted here."""
    await adopt(store.database)
    relay = Relay(store, broker, settings, clock)
    work = RelayedWork(store, broker, relay, clock)
    if relays:
        relay.start()
    try:
        yield work, relay
    finally:
        await relay.stop()
