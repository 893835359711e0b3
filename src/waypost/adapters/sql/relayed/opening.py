"""The stack on an open store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waypost.adapters.sql.relayed.relaying import Relay
from waypost.adapters.sql.relayed.work import RelayedWork
from waypost.adapters.sql.settings import OutboxSettings
from waypost.adapters.sql.store import Store
from waypost.ports.broker import Broker
from waypost.ports.clock import Clock


@asynccontextmanager
async def opened_relayed(
    store: Store, broker: Broker, settings: OutboxSettings, clock: Clock
) -> AsyncIterator[tuple[RelayedWork, Relay]]:
    """Work that *broker* carries, and its relay, which runs."""
    relay = Relay(store, broker, settings, clock)
    work = RelayedWork(store, broker, relay, clock)
    relay.start()
    try:
        yield work, relay
    finally:
        await relay.stop()
