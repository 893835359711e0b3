"""Intake: a repeat costs nothing but its answer."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.memory.dedup import MemoryDedup
from tests.memory.templates import MemoryTemplates
from tests.shows import shows
from tests.unit.pipeline.test_report import ANN, RegistryBench
from tests.unit.runtime.bench import APP
from waypost.domain.backlog import Backlog
from waypost.domain.channel import Channel
from waypost.domain.content import Urgency
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.ids import CallerId
from waypost.domain.scope import EVERY_SCOPE
from waypost.domain.submission import Defaults, Submission
from waypost.pipeline.direct import DirectDevices
from waypost.pipeline.intake import Caller, Intake
from waypost.pipeline.template_choice import StoredTemplates
from waypost.ports.pressure import Pressure
from waypost.ports.work import Accepted, Duplicate
from waypost.telemetry import Silent

pytestmark = pytest.mark.asyncio

CALLER = Caller(APP, CallerId("shop"), EVERY_SCOPE)


@shows("S1-24")
async def test_a_duplicate_reads_no_registry(tmp_path: Path) -> None:
    """The check comes before any look at devices (requirements S1-24)."""
    bench = RegistryBench(tmp_path / "board")
    await bench.register(ANN, Channel("apns"))
    intake = Intake(
        bench.work,
        MemoryDedup(bench.store, bench.clock),
        bench.clock,
        bench.ids,
        Silent(),
        {APP: Defaults(dedup_window_s=86_400)},
        DirectDevices(bench.registry, {}),
        StoredTemplates(MemoryTemplates()),
        backlog=lambda: Backlog(1_000, is_shared=True),
    )
    said = Submission(user_id=ANN, title="Hello")
    async with bench.running() as loop:
        (first,) = await intake.submit(CALLER, [said])
        assert isinstance(first, Accepted)
        await bench.settled(loop)
        assert bench.registry.calls == ["for_users"]
        for _ in range(10):
            (again,) = await intake.submit(CALLER, [msgspec.structs.replace(said)])
            assert isinstance(again, Duplicate)
            assert again.first_id == first.id
            await bench.settled(loop)
    assert bench.registry.calls == ["for_users"]
    assert len(bench.apns.sent) == 1


async def test_the_critical_lane_is_shed_last(tmp_path: Path) -> None:
    """Half of what may be waited is kept for it; what was refused left nothing behind."""
    bench = RegistryBench(tmp_path / "board")
    pressure = Pressure(0.0, 0.5)
    dedup = MemoryDedup(bench.store, bench.clock)
    intake = Intake(
        bench.work,
        dedup,
        bench.clock,
        bench.ids,
        Silent(),
        {APP: Defaults()},
        DirectDevices(bench.registry, {}),
        StoredTemplates(MemoryTemplates()),
        lambda: Backlog(1_000, is_shared=True),
        lambda: pressure,
    )
    normal = Submission(user_id=ANN, title="Hello")
    critical = msgspec.structs.replace(normal, urgency=Urgency.CRITICAL)
    with pytest.raises(Unavailable) as refused:
        await intake.submit(CALLER, [normal])
    assert refused.value.code is ErrorCode.STORAGE_BUSY
    (first,) = await intake.submit(CALLER, [critical])
    assert isinstance(first, Accepted)
    pressure = Pressure(0.0, 1.0)
    with pytest.raises(Unavailable):
        await intake.submit(CALLER, [critical])
