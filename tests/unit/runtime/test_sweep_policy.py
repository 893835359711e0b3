"""The policy "S3 sweep" at work (requirements S3-61 to S3-65)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shows import shows
from tests.unit.runtime.timed import AWAY, TAKEN, TimedBench
from waypost.domain.channel import Channel
from waypost.domain.outcome import Throttled
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, MINUTE_MS, SECOND_MS

pytestmark = pytest.mark.asyncio


@pytest.fixture
def bench(tmp_path: Path) -> TimedBench:
    """A lane on an empty store."""
    return TimedBench(tmp_path / "worker_slots")


@shows("S3-61", "S3-62", "S3-64", "S3-65")
async def test_the_sweep_retries_at_once_after_5_and_after_15_minutes_and_then_never(bench: TimedBench) -> None:
    bench.under("s3_sweep")
    bench.apns.answer = lambda delivery: AWAY
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann")
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.turn(loop)
        assert bench.attempts_s == [0, 0]
        await bench.pass_time(loop, 26 * 60, step_s=10)
        await bench.pass_time(loop, DAY_MS // SECOND_MS, step_s=3_600)
    assert bench.attempts_s == [0, 0, 5 * 60, 20 * 60]
    receipt = await bench.receipt(told)
    assert (receipt.status, receipt.retries) == (DeliveryStatus.FAILED, 3)
    assert (await bench.detail(told)).record.status is NotificationStatus.FAILED


@shows("S3-62")
async def test_the_sweep_leaves_alone_what_is_a_day_old(bench: TimedBench) -> None:
    """Even where it was accepted for longer: its attempts end with its first day."""
    bench.under("s3_sweep")
    bench.answers(Throttled("429", DAY_MS), AWAY)
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann", ttl_ms=2 * DAY_MS)
    async with bench.running() as loop:
        await bench.turn(loop)
        await bench.pass_time(loop, 2 * DAY_MS // SECOND_MS, step_s=3_600)
    assert len(bench.attempts_s) == 2
    assert (await bench.receipt(told)).status is DeliveryStatus.FAILED


@shows("S3-62", "S3-63")
async def test_the_sweep_takes_the_oldest_first_and_one_failure_stops_no_other(bench: TimedBench) -> None:
    """The count is raised before the retry is sent; the second of three fails again, the others are sent."""
    bench.under("s3_sweep")
    told = []
    bench.apns.answer = lambda delivery: AWAY
    async with bench.running() as loop:
        for user in ("ann", "bob", "cyd"):
            await bench.register(user, Channel("apns"))
            told.append(await bench.accept(user))
            await bench.pass_time(loop, 1)
        await bench.pass_time(loop, 10)
        bench.apns.sent.clear()
        counts: list[int] = []
        bench.apns.on_send = lambda delivery: counts.append(bench.store.rows[delivery.id].receipts[delivery.n].retries)
        bench.apns.answer = lambda delivery: AWAY if delivery.id == told[1] else TAKEN
        bench.clock.advance(5 * MINUTE_MS)
        await bench.turn(loop)
    assert [delivery.id for delivery in bench.apns.sent] == told
    assert counts == [2, 2, 2]
    statuses = [(await bench.receipt(each)).status for each in told]
    assert statuses == [DeliveryStatus.SENT, DeliveryStatus.PENDING, DeliveryStatus.SENT]
