"""A whole worker on the memory store: what it finds again when nobody told it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.unit.runtime.bench import APNS, LaneBench, until
from waypost.adapters.memory.bulk import MemoryBulk
from waypost.adapters.memory.dedup import MemoryDedup
from waypost.adapters.memory.retention import MemoryRetention
from waypost.domain.ids import SHARDS
from waypost.domain.notification import Channel
from waypost.domain.outcome import Denied, Taken
from waypost.domain.status import DeliveryStatus
from waypost.runtime import worker as worker_module
from waypost.runtime.peers import NoPeers
from waypost.runtime.worker import Chores, Place, Worker

pytestmark = pytest.mark.asyncio


class OwnsAll:
    """The ownership of a worker alone."""

    def owned(self) -> int:
        """All of them."""
        return SHARDS

    def sharers(self) -> None:
        """Alone."""

    async def acquire(self, wanted: int) -> int:
        """There is nothing more."""
        return 0

    def offer(self, n: int) -> None:
        """There is nobody to have them."""

    async def hand_over(self) -> int:
        """Nothing was offered."""
        return 0

    def offered(self) -> int:
        """Nothing was offered."""
        return 0

    async def take_role(self, name: str) -> bool:
        """It has every role."""
        return True


class NoServer:
    """A worker without an API."""

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaneBench:
    """An empty store, and chores that are due soon."""
    monkeypatch.setattr(worker_module, "DEPTH_S", 0.02)
    monkeypatch.setattr(worker_module, "PARKED_S", 0.02)
    return LaneBench(tmp_path / "board")


@asynccontextmanager
async def at_work(bench: LaneBench, drain_timeout_s: float = 5.0) -> AsyncIterator[Worker]:
    """A worker from its start to its drain."""
    bench.made = bench.crew()
    place = Place(0, bench.board, NoPeers(), OwnsAll(), lambda: None)
    chores = Chores(
        bench.journal, MemoryDedup(bench.store, bench.clock), MemoryRetention(bench.store), MemoryBulk(bench.store), 30
    )
    worker = Worker(bench.made, place, chores, backlog_limit=1_000)
    stop, ready = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(worker.run(NoServer(), stop, ready.set, drain_timeout_s))
    await ready.wait()
    try:
        yield worker
    finally:
        stop.set()
        await running


async def test_work_of_which_the_word_was_lost_is_done(bench: LaneBench) -> None:
    """Whoever accepted it died, or the inbox was full: nobody wakes the lane, and it is sent all the same."""
    await bench.register("ann", Channel("apns"))
    async with at_work(bench) as worker:
        await until(lambda: all(lane.is_idle for lane in worker._lanes.values()))
        told = await bench.accept("ann")
        await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})


async def test_what_is_parked_comes_back_although_nothing_was_expected(bench: LaneBench) -> None:
    """What was parked while the store was just asked, and had nothing, is found at the next look."""
    await bench.register("ann", Channel("apns"))
    bench.apns.answer = lambda delivery: Denied("refused", "the key was refused")
    async with at_work(bench):
        told = await bench.accept("ann")
        await until(lambda: any(receipt.parked for receipt in bench.store.rows[told].receipts.values()))
        bench.apns.answer = lambda delivery: Taken("id")
        bench.made.gates.nothing_came({f"breaker:{APNS}": 1, f"room:normal/{APNS}": 1})
        bench.clock.advance(6_000)
        await until(lambda: bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT})


async def test_what_a_sender_reports_when_it_is_stopped_is_written(
    bench: LaneBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time for the drain is over, the provider had it all along: it is not sent again after the start."""

    async def stop(timeout_s: float) -> None:
        bench.apns.finish(Taken("id"))

    monkeypatch.setattr(bench.apns, "stop", stop)
    await bench.register("ann", Channel("apns"))
    bench.apns.answer = lambda delivery: None
    async with at_work(bench, drain_timeout_s=0.01):
        told = await bench.accept("ann")
        await until(lambda: bool(bench.apns.open))
    assert bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT}
