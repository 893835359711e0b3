"""A settlement that cannot be written: the others are, and the worker lives on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.adapters.noted import Noted
from tests.unit.runtime.bench import LaneBench, until
from waypost.domain.channel import Channel
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.notification import Guarantee
from waypost.domain.outcome import Taken
from waypost.domain.progress import Stale
from waypost.domain.settlement import Intent, Sent
from waypost.domain.status import NotificationStatus
from waypost.ports.pressure import Pressure
from waypost.ports.work import Lease, Settled, Work
from waypost.runtime.settler import HELD_AFTER_S
from waypost.telemetry import Event, Metric

pytestmark = pytest.mark.asyncio


class Choking:
    """A store that cannot encode one provider's id, nor record an intent for one user."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """All of it or nothing."""
        for one in settled:
            for change in one.changes:
                if change.settlement == Sent("indigestible"):
                    raise OverflowError("cannot be encoded")
                if isinstance(change.settlement, Intent) and one.notification.user_id == "bob":
                    raise OverflowError("cannot be encoded")
        return await self._work.settle(lease, settled)


@pytest.fixture
def bench(tmp_path: Path) -> LaneBench:
    """A lane on that store."""
    return LaneBench(tmp_path / "worker_slots", lambda work: cast(Work, Choking(work)))


async def test_an_outcome_that_cannot_be_written_ends_as_a_dead_letter_alone(bench: LaneBench) -> None:
    """It is not sent again and again by one worker after the other; its neighbours read sent."""
    users = ("ann", "bob", "cyd")
    bench.apns.answer = lambda delivery: Taken("indigestible" if delivery.device.user_id == "bob" else "id")
    for user in users:
        await bench.register(user, Channel("apns"))
    ann, bob, cyd = [await bench.accept(user) for user in users]
    async with bench.running() as loop:
        await bench.settled(loop)
        assert [(await bench.detail(each)).record.status for each in (ann, cyd)] == [NotificationStatus.SENT] * 2
        detail = await bench.detail(bob)
    assert detail.record.status is NotificationStatus.FAILED
    assert (detail.receipts[0].code, detail.receipts[0].dead) == ("unrecorded", True)
    assert len(bench.apns.sent) == 3


async def test_what_could_not_be_put_on_record_is_not_sent(bench: LaneBench) -> None:
    """At most once: without its intent no byte leaves."""
    for user in ("ann", "bob"):
        await bench.register(user, Channel("apns"))
    ann, bob = [await bench.accept(user, Guarantee.AT_MOST_ONCE) for user in ("ann", "bob")]
    async with bench.running() as loop:
        await bench.settled(loop)
        assert (await bench.detail(ann)).record.status is NotificationStatus.SENT
        assert (await bench.detail(bob)).record.status is NotificationStatus.FAILED
    assert [delivery.id for delivery in bench.apns.sent] == [ann]


async def test_nothing_is_leased_while_outcomes_wait_too_long(bench: LaneBench) -> None:
    """What is sent and not recorded would be sent again after a crash; accepts that wait are no reason."""
    await bench.register("ann", Channel("apns"))
    async with bench.running() as loop:
        settler = bench.made.settler
        settler.pressure = lambda: Pressure(2.0, 1.0)
        ann = await bench.accept("ann")
        await bench.settled(loop)
        assert not bench.apns.sent
        settler.pressure = lambda: Pressure(2.0, 0.9)
        await bench.settled(loop)
        assert (await bench.detail(ann)).record.status is NotificationStatus.SENT


class Away:
    """A store that takes no settlement until it is back."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.is_away = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """Refuse, or pass it on."""
        if self.is_away:
            raise Unavailable("away", ErrorCode.STORAGE_AWAY)
        return await self._work.settle(lease, settled)


async def test_what_cannot_be_written_is_a_number_while_it_cannot(tmp_path: Path) -> None:
    """As long as the store is away, and no longer: an alert stands on it."""
    bench, told = LaneBench(tmp_path / "worker_slots", lambda work: cast(Work, Away(work))), Noted()
    bench.telemetry = told
    for user in ("ann", "bob"):
        await bench.register(user, Channel("apns"))
        await bench.accept(user)
    async with bench.running():
        await until(lambda: told.gauges.get(Metric.HELD_OUTCOMES) == 2)
        cast(Away, bench.work).is_away = False
        await bench.made.settler.drained()
    assert told.gauges[Metric.HELD_OUTCOMES] == 0
    assert [event for event, _ in told.events] == [Event.OUTCOMES_HELD, Event.OUTCOMES_RESUMED]


class Slow:
    """A store that takes a settlement, and has it written when it is told to."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.is_back = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    async def settle(self, lease: Lease, settled: Sequence[Settled]) -> list[Stale]:
        """Wait with it, as stores do that are busy or away."""
        await self.is_back.wait()
        return await self._work.settle(lease, settled)


async def test_what_a_store_has_had_for_long_is_held_though_it_refuses_nothing(tmp_path: Path) -> None:
    """Stores wait for their servers and locks by themselves, so nobody else would say that nothing is written."""
    bench, told = LaneBench(tmp_path / "worker_slots", lambda work: cast(Work, Slow(work))), Noted()
    bench.telemetry = told
    for user in ("ann", "bob"):
        await bench.register(user, Channel("apns"))
        await bench.accept(user)
    async with bench.running():
        settler = bench.made.settler
        await until(lambda: settler._writing == 2)
        settler.look(100.0)
        settler.look(100.0 + HELD_AFTER_S - 0.1)
        assert not told.events
        settler.look(100.0 + HELD_AFTER_S)
        assert told.fields_of(Event.OUTCOMES_HELD) == [{"code": "storage_busy", "count": 2}]
        assert (told.gauges[Metric.HELD_OUTCOMES], settler.is_full) == (2, True)
        cast(Slow, bench.work).is_back.set()
        await settler.drained()
        settler.look(200.0)
    assert (told.gauges[Metric.HELD_OUTCOMES], settler.is_full) == (0, False)
    assert [event for event, _ in told.events] == [Event.OUTCOMES_HELD, Event.OUTCOMES_RESUMED]
