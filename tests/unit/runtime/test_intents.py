"""Intents in a lane on the memory store: what is too late by the time that its attempt is on record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contract.clock import StoppedClock
from tests.unit.runtime.bench import APNS, LaneBench
from tests.unit.runtime.test_lane import Faulty
from waypost.domain.channel import Channel
from waypost.domain.notification import Guarantee
from waypost.domain.progress import Stale
from waypost.domain.settlement import Intent
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import HOUR_MS
from waypost.ports.work import Lease, Settled

pytestmark = pytest.mark.asyncio


class SlowToRecord(Faulty):
    """A store in which putting an intent on record takes an hour, the first time."""

    clock: StoppedClock
    is_slow = True

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """Write, then let time go by."""
        stale = await self._work.settle(lease, settled)
        if self.is_slow and any(isinstance(change.settlement, Intent) for one in settled for change in one.changes):
            self.is_slow = False
            self.clock.advance(HOUR_MS)
        return stale


async def test_what_is_past_its_intents_deadline_is_not_sent_but_given_back(tmp_path: Path) -> None:
    """Whoever stood still for so long may find it closed as unknown, and even replayed."""
    bench = LaneBench(tmp_path / "worker_slots", SlowToRecord)
    assert isinstance(bench.work, SlowToRecord)
    bench.work.clock = bench.clock
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann", Guarantee.AT_MOST_ONCE)
    async with bench.running() as loop:
        await bench.settled(loop)
        await bench.settled(loop)
    assert bench.statuses(told) == {Channel("apns"): DeliveryStatus.SENT}
    assert [delivery.attempt for delivery in bench.apns.sent] == [2], "the first was not made"
    assert bench.made.gates.in_flight()[APNS] == 0


async def test_what_is_over_when_its_intent_is_on_record_is_not_sent(tmp_path: Path) -> None:
    """The store took its time; the message expired meanwhile, and that is known."""
    bench = LaneBench(tmp_path / "worker_slots", SlowToRecord)
    assert isinstance(bench.work, SlowToRecord)
    bench.work.clock = bench.clock
    await bench.register("ann", Channel("apns"))
    told = await bench.accept("ann", Guarantee.AT_MOST_ONCE, ttl_ms=HOUR_MS // 2)
    async with bench.running() as loop:
        await bench.settled(loop)
    assert bench.statuses(told) == {Channel("apns"): DeliveryStatus.EXPIRED}
    assert not bench.apns.sent and bench.made.gates.in_flight()[APNS] == 0
