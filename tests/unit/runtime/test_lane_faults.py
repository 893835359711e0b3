"""A lane whose store or registry is away for a moment: nothing that it leased is kept from being sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.memory.devices import MemoryDevices
from tests.unit.runtime.bench import APNS, LaneBench, until
from waypost.domain.channel import Channel
from waypost.domain.device import Device
from waypost.domain.errors import Unavailable
from waypost.domain.ids import AppId, UserId
from waypost.domain.notification import Lane
from waypost.domain.outcome import Taken
from waypost.domain.status import NotificationStatus
from waypost.runtime.delivery_context import DeliveryContext
from waypost.runtime.dispatch import Dispatch

pytestmark = pytest.mark.asyncio


class AwayOnce(MemoryDevices):
    """A registry that cannot be read at the first try."""

    tries = 0

    async def for_users(self, users: Sequence[tuple[AppId, UserId]]) -> list[list[Device]]:
        """See Devices."""
        self.tries += 1
        if self.tries == 1:
            raise Unavailable("away")
        return await super().for_users(users)


class AwayBench(LaneBench):
    """A lane whose registry is away at first."""

    def context(self) -> DeliveryContext:
        """With that registry."""
        return msgspec.structs.replace(super().context(), devices=AwayOnce(self.store))


async def test_what_shared_a_lease_with_a_suspect_is_sent_when_the_registry_is_back(tmp_path: Path) -> None:
    """Suspects are taken one at a time; when the first cannot be read, the others of the lease are given back too."""
    bench = AwayBench(tmp_path / "worker_slots")
    await bench.register("ann", Channel("apns"))
    told = [await bench.accept("ann") for _ in range(3)]
    bench.worker_slots.note(0, Lane.NORMAL, told[:2])
    bench.worker_slots.bury(0)
    async with bench.running() as loop:
        await bench.settled(loop)
        assert [(await bench.detail(each)).record.status for each in told] == [NotificationStatus.SENT] * 3
    assert [delivery.id for delivery in bench.apns.sent] == told


async def test_a_registry_that_is_away_makes_no_suspects(tmp_path: Path) -> None:
    """What was only leased when the store went away had nothing to do with a worker's later death."""
    bench = AwayBench(tmp_path / "worker_slots")
    await bench.register("ann", Channel("apns"))
    await bench.accept("ann")
    async with bench.running():
        devices = bench.made.devices
        assert isinstance(devices, AwayOnce)
        await until(lambda: devices.tries == 1)
    bench.worker_slots.bury(0)
    assert bench.worker_slots.suspects() == {}


@pytest.mark.parametrize("wrong", ["told twice", "no outcome"])
async def test_a_sender_with_a_bug_in_one_outcome_loses_no_other_of_the_same_turn(tmp_path: Path, wrong: str) -> None:
    """All of a turn are settled in one go: those behind the wrong one land, and their places are free again."""
    bench = LaneBench(tmp_path / "worker_slots")
    bench.apns.answer = lambda _: None
    for n in range(4):
        await bench.register(f"user-{n}", Channel("apns"))
    told = [await bench.accept(f"user-{n}") for n in range(4)]
    async with bench.running() as loop:
        loop.wake()
        await until(lambda: len(bench.apns.open) == len(told))
        nonsense: Any = object()
        (first, report), *others = bench.apns.open
        report(first, Taken("id"))
        with suppress(KeyError):
            report(*((first, Taken("id")) if wrong == "told twice" else (others.pop(0)[0], nonsense)))
        for delivery, report in others:
            report(delivery, Taken("id"))
        await asyncio.sleep(0)
        assert bench.made.gates.in_flight()[APNS] == 0
        await bench.settled(loop)
        sent = [first.id, *(delivery.id for delivery, _ in others)]
        assert [(await bench.detail(each)).record.status for each in sent] == [NotificationStatus.SENT] * len(sent)


async def test_a_bug_with_one_notification_loses_no_other_that_landed_in_the_same_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = LaneBench(tmp_path / "worker_slots")
    bench.apns.answer = lambda _: None
    for n in range(4):
        await bench.register(f"user-{n}", Channel("apns"))
    told = [await bench.accept(f"user-{n}") for n in range(4)]
    async with bench.running() as loop:
        loop.wake()
        await until(lambda: len(bench.apns.open) == len(told))
        settler = bench.made.settler
        add = settler.add

        def raising(dispatch: Dispatch) -> None:
            if dispatch.plan.item.notification.id == told[1]:
                raise RuntimeError("a bug")
            add(dispatch)

        with monkeypatch.context() as patch:
            patch.setattr(settler, "add", raising)
            for delivery, report in bench.apns.open:
                report(delivery, Taken("id"))
            await asyncio.sleep(0)
        await bench.settled(loop)
        sent = [each for each in told if each != told[1]]
        assert [(await bench.detail(each)).record.status for each in sent] == [NotificationStatus.SENT] * 3
