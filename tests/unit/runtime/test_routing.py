"""Routing apart from sending, on the memory store: what becomes of a notification between the two."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.unit.runtime.bench import APP, PLATFORMS, LaneBench, until
from waypost.domain.amendment import Amended, Amendment
from waypost.domain.backlog import Lags, Waiting
from waypost.domain.channel import Channel
from waypost.domain.device import Registration
from waypost.domain.ids import DeviceId, UserId
from waypost.domain.notification import Lane
from waypost.domain.progress import Stale
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import MINUTE_MS, Instant
from waypost.ports.promises import Promise
from waypost.ports.work import Acceptance, Lease, NewNotification, Replay, Settled, Work
from waypost.runtime.leasing import LeaseLoop
from waypost.runtime.routing import RouteLoop

pytestmark = pytest.mark.asyncio


class Apart:
    """Leases of a store only what is fresh, or only the rest."""

    def __init__(self, work: Work, *, fresh: bool) -> None:
        self.inner = work
        self._fresh = fresh

    @property
    def promises(self) -> frozenset[Promise]:
        """See Work."""
        return self.inner.promises

    async def accept(self, batch: Sequence[NewNotification | Replay]) -> list[Acceptance]:
        """See Work."""
        return await self.inner.accept(batch)

    async def lease(self, lane: Lane, n: int, until: Instant) -> Lease:
        """See Work."""
        lease = await self.inner.lease(lane, n, until)
        items = tuple(item for item in lease.items if (item.open_targets is None) is self._fresh)
        rest = [Settled(item.notification, given_back=True) for item in lease.items if item not in items]
        await self.inner.settle(lease, rest)
        return Lease(lease.token, lane, items)

    async def extend(self, lease: Lease, until: Instant) -> bool:
        """See Work."""
        return await self.inner.extend(lease, until)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """See Work."""
        return await self.inner.settle(lease, settled)

    async def promote_due(self, now: Instant, n: int, lifted: Mapping[str, int] = {}) -> int | None:
        """See Work."""
        return await self.inner.promote_due(now, n, lifted)

    async def conditions(self) -> frozenset[str]:
        """See Work."""
        return await self.inner.conditions()

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """See Work."""
        return await self.inner.amend(amendments, now)

    async def depth(self, lane: Lane) -> int:
        """See Work."""
        return await self.inner.depth(lane)

    async def backlog(self, now: Instant, counts_from: int) -> Waiting:
        """See Work."""
        return await self.inner.backlog(now, counts_from)

    async def lag(self) -> Lags:
        """See Work."""
        return await self.inner.lag()


@pytest.fixture
def bench(tmp_path: Path) -> LaneBench:
    """A lane that sends what was routed, on an empty store."""
    return LaneBench(tmp_path / "worker_slots", lambda work: Apart(work, fresh=False))


@contextlib.asynccontextmanager
async def routing(bench: LaneBench) -> AsyncIterator[LeaseLoop]:
    """A loop that routes, until the block ends."""
    assert isinstance(bench.work, Apart)
    loop = RouteLoop(Lane.NORMAL, bench.context(), Apart(bench.work.inner, fresh=True))
    running = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        loop.stop()
        await running


async def routed(bench: LaneBench) -> None:
    """Route all there is."""
    async with routing(bench) as loop:
        await until(lambda: loop.is_idle)


async def test_one_stores_the_targets_and_another_sends_to_them(bench: LaneBench) -> None:
    """Between the two it reads ``processing`` and nothing was tried; then every device has it once."""
    await bench.register("ann", Channel("apns"), Channel("fcm"))
    told = await bench.accept("ann")
    await routed(bench)
    detail = await bench.detail(told)
    assert detail.record.status is NotificationStatus.PROCESSING
    assert [(receipt.status, receipt.attempt) for receipt in detail.receipts] == [(DeliveryStatus.PENDING, 0)] * 2
    assert bench.apns.sent == []
    async with bench.running() as loop:
        await bench.settled(loop)
    detail = await bench.detail(told)
    assert detail.record.status is NotificationStatus.SENT
    assert [receipt.attempt for receipt in detail.receipts] == [1, 1]
    assert (len(bench.apns.sent), len(bench.fcm.sent)) == (1, 1)


async def test_what_needs_no_sending_ends_where_it_is_routed(bench: LaneBench) -> None:
    """Nobody to send to, and too late."""
    await bench.register("ann", Channel("apns"))
    nobody, late = await bench.accept("nobody"), await bench.accept("ann", ttl_ms=MINUTE_MS)
    bench.clock.advance(MINUTE_MS)
    await routed(bench)
    assert (await bench.detail(nobody)).record.status is NotificationStatus.NO_TARGETS
    assert (await bench.detail(late)).record.status is NotificationStatus.EXPIRED


async def test_what_expires_between_the_two_is_not_sent(bench: LaneBench) -> None:
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann", ttl_ms=MINUTE_MS)
    await routed(bench)
    bench.clock.advance(MINUTE_MS)
    async with bench.running() as loop:
        await bench.settled(loop)
    assert (await bench.detail(told)).record.status is NotificationStatus.EXPIRED
    assert bench.apns.sent == []


async def test_a_token_that_changes_between_the_two_is_used(bench: LaneBench) -> None:
    """The device is read again when it is sent to."""
    apns = Channel("apns")
    await bench.register("ann", apns)
    await bench.accept("ann")
    await routed(bench)
    renewed = Registration(APP, UserId("ann"), DeviceId("ann-apns"), PLATFORMS[apns], "token-renewed")
    await bench.devices.upsert(renewed, bench.clock.now(), cap=10)
    async with bench.running() as loop:
        await bench.settled(loop)
    assert [delivery.device.token for delivery in bench.apns.sent] == ["token-renewed"]


async def test_what_kills_every_router_is_buried(bench: LaneBench) -> None:
    """Three times alone in the slot of a dead worker: a dead letter, and no other is held."""
    await bench.register("ann", Channel("apns"))
    poison, well = await bench.accept("ann"), await bench.accept("ann")
    for _ in range(3):
        bench.worker_slots.note(0, Lane.NORMAL, [poison])
        bench.worker_slots.bury(0)
    await routed(bench)
    assert [receipt.code for receipt in (await bench.detail(poison)).receipts] == ["poison"]
    assert [receipt.status for receipt in (await bench.detail(well)).receipts] == [DeliveryStatus.PENDING]
