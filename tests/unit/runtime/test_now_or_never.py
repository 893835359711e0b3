"""A TTL of 0 in a crowd: one attempt now, and now is a moment long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.runtime.bench import LaneBench, until
from waypost.domain.channel import Channel
from waypost.domain.delivery import NOW_OR_NEVER_MS
from waypost.domain.notification import Lane
from waypost.domain.outcome import CredentialRejected, Taken
from waypost.domain.status import NotificationStatus

pytestmark = pytest.mark.asyncio

USERS = ("ann", "bob", "cyd")


async def test_what_finds_no_room_at_once_still_gets_its_one_attempt(tmp_path: Path) -> None:
    """Room for one and three devices to a user: who waits a moment for room is not expired by that."""
    bench = LaneBench(tmp_path / "worker_slots")
    bench.budgets[Lane.NORMAL] = 1
    bench.apns.answer = lambda delivery: None
    for user in USERS:
        await bench.register(user, Channel("apns"), Channel("fcm"))
    told = [await bench.accept(user, ttl_ms=0) for user in USERS]
    async with bench.running() as loop:
        await until(lambda: loop.is_idle and len(bench.fcm.sent) >= 1)
        await bench.written()
        details = [await bench.detail(each) for each in told]
        assert any(receipt.parked for detail in details for receipt in detail.receipts)
        bench.apns.answer = lambda delivery: Taken("id")
        bench.apns.finish(Taken("id"))
        for _ in range(10):
            await bench.settled(loop)
            await bench.work.promote_due(bench.clock.now(), 100, bench.made.gates.lifted())
        await bench.settled(loop)
        assert [(await bench.detail(each)).record.status for each in told] == [NotificationStatus.SENT] * 3


async def test_what_finds_no_room_for_too_long_expires(tmp_path: Path) -> None:
    bench = LaneBench(tmp_path / "worker_slots")
    bench.budgets[Lane.NORMAL] = 1
    bench.apns.answer = lambda delivery: None
    for user in USERS:
        await bench.register(user, Channel("apns"), Channel("fcm"))
    told = [await bench.accept(user, ttl_ms=0) for user in USERS]
    async with bench.running() as loop:
        await until(lambda: loop.is_idle and len(bench.fcm.sent) >= 1)
        await bench.written()
        bench.clock.advance(NOW_OR_NEVER_MS)
        bench.apns.finish(Taken("id"))
        for _ in range(10):
            await bench.written()
            loop.wake()
            await until(lambda: loop.is_idle)
            await bench.work.promote_due(bench.clock.now(), 100, bench.made.gates.lifted())
        await bench.settled(loop)
    final = [(await bench.detail(each)).record.status for each in told]
    assert NotificationStatus.PARTIAL in final
    assert len(bench.apns.sent) < 3


async def test_an_attempt_that_was_refused_was_the_one(tmp_path: Path) -> None:
    """A credential that is refused leaves nothing to wait for."""
    bench = LaneBench(tmp_path / "worker_slots")
    bench.apns.answer = lambda delivery: CredentialRejected("refused", "the key was refused")
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann", ttl_ms=0)
    async with bench.running() as loop:
        await bench.settled(loop)
    assert (await bench.detail(told)).record.status is NotificationStatus.EXPIRED
