"""Every device is given a new token at the same moment, again and again: none keeps an old one, readers find each."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.registries import RegistryUnderTest
from tests.shows import shows
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import later

pytestmark = pytest.mark.asyncio

APP = AppId("demo")
USERS = [UserId(f"u{n}") for n in range(20)]
DEVICES = [DeviceId("phone"), DeviceId("tablet")]
ROUNDS = 3
NO_CAP = 0


@shows("S3-127")
async def test_a_storm_of_refreshes_leaves_each_device_its_newest_token(registry: RegistryUnderTest) -> None:
    """One after the other for a device, all devices at once; whoever reads meanwhile misses no device that there is."""
    began = registry.clock.now()
    is_over = asyncio.Event()

    async def refreshed(user: UserId, device: DeviceId, number: int) -> None:
        call = Registration(APP, user, device, Platform("android"), _token(user, device, number))
        await registry.devices.upsert(call, later(began, number), NO_CAP)

    async def refreshed_again(user: UserId, device: DeviceId) -> None:
        for number in range(1, ROUNDS):
            await refreshed(user, device, number)

    async def read_on() -> int:
        reads = 0
        while not is_over.is_set() or not reads:
            for user, found in zip(USERS, await _found(registry), strict=True):
                assert [device for device, _ in found] == DEVICES
                assert all(token in _tokens(user, device) for device, token in found)
            reads += 1
            await asyncio.sleep(0)  # a registry in memory never waits
        return reads

    each = [(user, device) for user in USERS for device in DEVICES]
    await asyncio.gather(*(refreshed(user, device, 0) for user, device in each))
    reading = asyncio.create_task(read_on())
    await asyncio.gather(*(refreshed_again(user, device) for user, device in each))
    is_over.set()
    assert await reading
    newest = [[(device, _token(user, device, ROUNDS - 1)) for device in DEVICES] for user in USERS]
    assert await _found(registry) == newest


async def _found(registry: RegistryUnderTest) -> list[list[tuple[DeviceId, str]]]:
    found = await registry.devices.for_users([(APP, user) for user in USERS])
    return [[(device.device_id, device.token) for device in devices] for devices in found]


def _tokens(user: UserId, device: DeviceId) -> list[str]:
    return [_token(user, device, number) for number in range(ROUNDS)]


def _token(user: UserId, device: DeviceId, number: int) -> str:
    return f"{user}/{device}/{number}"
