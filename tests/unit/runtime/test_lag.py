"""The lag by lane and app, as it is published."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.amending import withdraw
from tests.unit.runtime.bench import APP, LaneBench
from waypost.domain.channel import Channel
from waypost.domain.time import MINUTE_MS
from waypost.runtime.lag import LagWatch
from waypost.telemetry import Metric, Silent

pytestmark = pytest.mark.asyncio


class Labelled(Silent):
    """The last value of each gauge, by its labels."""

    def __init__(self) -> None:
        self.told: dict[tuple[Metric, str, str], float] = {}

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep it."""
        self.told[metric, labels["lane"], labels["app"]] = value


async def test_how_much_is_open_and_how_old_it_is_goes_back_to_nothing(tmp_path: Path) -> None:
    bench, told = LaneBench(tmp_path / "worker_slots"), Labelled()
    watch = LagWatch(bench.work, bench.clock, told)
    await bench.register("ann", Channel("apns"))
    accepted = await bench.accept("ann")
    bench.clock.advance(MINUTE_MS)
    await watch.measure()
    assert told.told == {(Metric.OPEN, "normal", APP): 1, (Metric.OLDEST_NEW, "normal", APP): 60}
    await withdraw(bench.work, APP, [accepted], "cancelled", bench.clock.now())
    await watch.measure()
    assert told.told == {(Metric.OPEN, "normal", APP): 0, (Metric.OLDEST_NEW, "normal", APP): 0}
