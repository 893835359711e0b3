"""A thousand deliveries of which is known what becomes of each, through a lane on a real store, and its metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from tests.contract.clock import StoppedClock
from tests.contract.sql import settings_of
from tests.unit.runtime.bench import APP, LaneBench
from waypost.adapters.prometheus.sink import PrometheusSink
from waypost.bootstrap.features import tables
from waypost.domain.channel import Channel
from waypost.domain.delivery import Delivery
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import DeviceId, UserId
from waypost.domain.outcome import Gone, Outcome, Refused, Taken, Unreachable
from waypost.features.balance.watch import BalanceWatch
from waypost.stores.sql.store import Store, open_store

USERS = 1_000
GONE, REFUSED, AWAY = 40, 30, 30
"""How many of the users have a dead token, are sent what is refused, and are reached by the second attempt alone."""
WAIT_MS, RETRY_MS = 2_000, 1_000
"""How long they wait for the lane, and for the second attempt."""


def outcome_of(delivery: Delivery) -> Outcome:
    """Answer as is known of the user, whose number is in the id; failures lie apart, so that no breaker opens."""
    place, which = divmod(int(delivery.device.user_id), 10)
    if which != 3:
        return Taken("id")
    if place < GONE:
        return Gone("Unregistered")
    if place < GONE + REFUSED:
        return Refused("BadCollapseId", "the request breaks a rule of APNs")
    return Unreachable("connect", "refused") if delivery.attempt == 1 else Taken("id")


class KnownRun:
    """The lane, its store and what the metrics say."""

    def __init__(self, bench: LaneBench, store: Store, sink: PrometheusSink, clock: StoppedClock) -> None:
        self.bench = bench
        self.store = store
        self.sink = sink
        self.clock = clock

    async def accept(self) -> None:
        """Give each user a device, and accept a notification for each."""
        for n in range(USERS):
            user, token = UserId(str(n)), f"token-{n}"
            registration = Registration(APP, user, DeviceId("phone"), Platform("ios"), token)
            await self.bench.devices.upsert(registration, self.clock.now(), cap=10)
            await self.bench.accept(str(n))

    async def run(self) -> None:
        """Deliver everything, with the second attempts."""
        self.clock.advance(WAIT_MS)
        async with self.bench.running() as loop:
            await self.bench.settled(loop)
            await BalanceWatch(self.sink).look(self.store.balance, self.clock)
            self.waiting = self.samples()
            self.clock.advance(RETRY_MS)
            await self.store.work.promote_due(self.clock.now(), USERS)
            await self.bench.settled(loop)
            loop.publish()
        await BalanceWatch(self.sink).look(self.store.balance, self.clock)
        self.store.database.measure()

    def samples(self) -> dict[str, float]:
        """Read the metrics as Prometheus does: values by name and labels."""
        return {
            sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.sink.render().decode())
            for sample in family.samples
        }


@asynccontextmanager
async def known_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KnownRun]:
    """Open the store and the metrics; what prometheus_client keeps for a process is put back."""
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    bench = LaneBench(folder / "worker_slots")
    sink = bench.telemetry = PrometheusSink(folder / "metrics")
    settings = settings_of(f"sqlite:///{folder / 'waypost.db'}")
    store = await open_store(settings, clock=bench.clock, peers=None, telemetry=sink, tables=tables())
    try:
        await store.shards.acquire()
        bench.work, bench.devices = store.work, store.devices  # type: ignore[assignment] # the real ones
        bench.apns.answer = outcome_of
        assert Channel("apns") in bench.context().routing.credentials[APP]
        yield KnownRun(bench, store, sink, bench.clock)
    finally:
        await store.close()
