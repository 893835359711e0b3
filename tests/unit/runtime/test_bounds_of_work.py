"""Where a worker's work ends: what it finishes before it stops, and how much it takes in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.amending import withdraw
from tests.unit.runtime.bench import APP, LaneBench, until
from tests.unit.runtime.test_worker import at_work
from waypost.domain.backlog import Full
from waypost.domain.channel import Channel
from waypost.domain.ids import AppId
from waypost.domain.notification import Lane
from waypost.domain.outcome import Taken
from waypost.domain.status import DeliveryStatus
from waypost.runtime import worker as worker_module
from waypost.runtime.roles import Role

pytestmark = pytest.mark.asyncio

ANSWER_S = 0.05
OTHER = AppId("other")
BACKLOG = 1_000
"""The limit that `at_work` sets."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaneBench:
    """An empty store, looked at often."""
    monkeypatch.setattr(worker_module, "DEPTH_S", 0.02)
    return LaneBench(tmp_path / "worker_slots")


async def test_what_is_in_flight_lands_before_its_sender_is_stopped(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart while the provider takes its time: the answer is waited for, since it would be sent again otherwise."""
    in_flight_at_stop: list[int] = []

    async def stop(timeout_s: float) -> None:
        in_flight_at_stop.append(len(bench.apns.open))

    monkeypatch.setattr(bench.apns, "stop", stop)
    await bench.register("ann", Channel("apns"))
    bench.apns.answer = lambda delivery: None
    async with at_work(bench, drain_timeout_s=30.0):
        told = await bench.accept("ann")
        await until(lambda: bool(bench.apns.open))
        asyncio.get_running_loop().call_later(ANSWER_S, bench.apns.finish, Taken("id"))
    assert in_flight_at_stop == [0]
    assert bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT}


async def test_a_lane_with_as_much_as_its_backlog_may_hold_is_full_until_there_is_less(bench: LaneBench) -> None:
    """Nobody delivers; one that is taken back makes room."""
    await bench.register("ann", Channel("apns"))
    async with at_work(bench, roles={Role.API}) as worker:
        for _ in range(BACKLOG - 1):
            await bench.accept("ann")
        assert worker.backlog.full(Lane.NORMAL, OTHER) is None
        last = await bench.accept("ann")
        await until(lambda: worker.backlog.full(Lane.NORMAL, OTHER) is Full.LANE)
        assert worker.backlog.full(Lane.HIGH, OTHER) is None
        await withdraw(bench.work, APP, [last], "cancelled", bench.clock.now())
        await until(lambda: worker.backlog.full(Lane.NORMAL, OTHER) is None)
