"""How many devices users have, counted by a walk through the registry by pages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from tests.contract.bench import APP, OTHER_APP
from tests.contract.stores import StoreUnderTest
from tests.memory.devices import MemoryDevices
from tests.memory.store import MemoryStore
from tests.shows import shows
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.features.device_counts import counting
from waypost.features.device_counts.counting import EVERY_S, DeviceCounter
from waypost.telemetry import Metric, Silent


class Gauged(Silent):
    """The values of the metric, by app and what they are."""

    def __init__(self) -> None:
        self.said: dict[tuple[str, str], float] = {}

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Keep the last one."""
        assert metric is Metric.DEVICES_PER_USER
        self.said[labels["app"], labels["of"]] = value


async def register(store: StoreUnderTest, app: AppId, devices: Sequence[int]) -> None:
    """Give each user so many telephones, and a mailbox, which is no device."""
    for user, n in enumerate(devices):
        for number in range(n):
            await _register(store, Registration(app, UserId(f"u{user}"), DeviceId(f"d{number}"), Platform("ios"), ""))
        await _register(store, Registration(app, UserId(f"u{user}"), DeviceId("mail"), Platform("email"), ""))


async def _register(store: StoreUnderTest, said: Registration) -> None:
    token = f"{said.user_id}-{said.device_id}@example.com"
    whole = Registration(said.app, said.user_id, said.device_id, said.platform, token)
    await store.devices.upsert(whole, store.clock.now(), cap=0)


@shows("S3-93")
@pytest.mark.asyncio
async def test_users_are_counted_by_their_devices(store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 users 35 have one device, three have two, one has four and one has nine; a page may end within a user."""
    monkeypatch.setattr(counting, "PAGE", 7)
    await register(store, APP, [1] * 20 + [9] + [2] * 3 + [1] * 15 + [4] + [0] * 3)
    await store.devices.deactivate(APP, UserId("u0"), DeviceId("mail"))
    told, hours = Gauged(), itertools.count(0, 0)
    await DeviceCounter(told, lambda: float(next(hours))).look(store.devices, [APP, OTHER_APP])
    assert told.said == {
        (APP, "average"): (35 + 3 * 2 + 4 + 9) / 40,
        (APP, "p95"): 2,
        (APP, "p99"): 9,
        **{(OTHER_APP, of): 0 for of in ("average", "p95", "p99")},
    }


@pytest.mark.asyncio
async def test_it_is_counted_once_an_hour() -> None:
    told, now_s, devices = Gauged(), [0.0], MemoryDevices(MemoryStore())
    counter = DeviceCounter(told, lambda: now_s[0])
    for now_s[0], is_time in ((0.0, True), (EVERY_S - 1, False), (EVERY_S, True)):
        told.said.clear()
        await counter.look(devices, [APP])
        assert bool(told.said) is is_time
