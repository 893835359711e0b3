"""How devices end: deleted with their dead token where an app says so, and by age where an operator does."""

from __future__ import annotations

import pytest

from tests.contract.registries import RegistryUnderTest
from tests.shows import shows
from waypost.domain.device import EMAIL, Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import DAY_MS, MINUTE_MS, later
from waypost.pipeline.age import Aged, DeviceAges, age
from waypost.ports.devices import Eviction, Use

pytestmark = pytest.mark.asyncio

APP = AppId("demo")
ANN = UserId("ann")
AGES = DeviceAges(unused_days=60, inactive_days=90)


async def register(registry: RegistryUnderTest, device_id: str, platform: str = "ios") -> None:
    """A device of ann's, a minute after whatever was before."""
    token = f"{device_id}@example.com"
    call = Registration(APP, ANN, DeviceId(device_id), Platform(platform), token)
    await registry.devices.upsert(call, registry.clock.advance(MINUTE_MS), 0)


async def reached(registry: RegistryUnderTest) -> list[str]:
    """The devices of ann that would be sent to, from the cache where there is one."""
    return [each.device_id for each in (await registry.devices.for_users([(APP, ANN)]))[0]]


async def states(registry: RegistryUnderTest) -> dict[str, bool]:
    """Each device that has a row, and whether it is active."""
    return {each.device_id: each.active for each in await registry.devices.of_user(APP, ANN, inactive=True)}


@shows("S1-40")
async def test_a_dead_token_is_deleted_with_its_row_where_the_app_says_so(registry: RegistryUnderTest) -> None:
    for device_id in ("dead", "kept", "living"):
        await register(registry, device_id)
    assert await reached(registry) == ["dead", "kept", "living"]
    tomorrow = later(registry.clock.now(), MINUTE_MS)
    dead = Eviction(APP, token_hash("dead@example.com"), tomorrow, deletes=True)
    kept = Eviction(APP, token_hash("kept@example.com"), tomorrow)
    assert await registry.devices.evict([dead, kept]) == [(APP, ANN)] * 2
    assert await states(registry) == {"kept": False, "living": True}
    assert await reached(registry) == ["living"]
    assert await registry.devices.evict([dead]) == []
    await register(registry, "dead")
    assert await states(registry) == {"dead": True, "kept": False, "living": True}


async def test_one_that_was_registered_again_is_not_deleted(registry: RegistryUnderTest) -> None:
    await register(registry, "d")
    died = registry.clock.advance(MINUTE_MS)
    await register(registry, "d")
    assert await registry.devices.evict([Eviction(APP, token_hash("d@example.com"), died, deletes=True)]) == []
    assert await states(registry) == {"d": True}


@shows("S3-80", "S3-81")
async def test_unused_for_60_days_is_inactive_and_inactive_for_90_is_gone(registry: RegistryUnderTest) -> None:
    """By days that the operator sets (requirements S3-80 and S3-81); who is reached or registers stays."""
    for device_id in ("unused", "reached", "returned", "stopped"):
        await register(registry, device_id)
    await register(registry, "mailbox", EMAIL)
    await registry.devices.deactivate(APP, ANN, DeviceId("stopped"))
    everybody = dict.fromkeys(("unused", "reached", "returned", "mailbox"), True) | {"stopped": False}
    now = registry.clock.advance(59 * DAY_MS)
    assert await age(registry.devices, APP, AGES, now) == Aged(0, 0)
    assert await states(registry) == everybody
    await registry.devices.touch([Use(APP, ANN, DeviceId("reached"), now)])
    await register(registry, "returned")
    now = registry.clock.advance(2 * DAY_MS)
    assert await age(registry.devices, APP, AGES, now) == Aged(1, 0)
    assert await states(registry) == everybody | {"unused": False}
    assert await age(registry.devices, APP, DeviceAges(), registry.clock.advance(30 * DAY_MS)) == Aged(0, 0)
    assert await age(registry.devices, APP, DeviceAges(inactive_days=90), registry.clock.now()) == Aged(0, 1)
    assert "stopped" not in await states(registry)
    now = registry.clock.advance(59 * DAY_MS)
    assert await age(registry.devices, APP, DeviceAges(inactive_days=90), now) == Aged(0, 0)
    now = registry.clock.advance(2 * DAY_MS)
    assert await age(registry.devices, APP, DeviceAges(inactive_days=90), now) == Aged(0, 1)
    assert await states(registry) == {"reached": True, "returned": True, "mailbox": True}


@shows("S3-81")
async def test_one_that_came_back_is_not_deleted_by_its_former_end(registry: RegistryUnderTest) -> None:
    await register(registry, "d")
    await registry.devices.deactivate(APP, ANN, DeviceId("d"))
    registry.clock.advance(100 * DAY_MS)
    await register(registry, "d")
    assert await registry.devices.purge(APP, registry.clock.now()) == 0
    await registry.devices.deactivate(APP, ANN, DeviceId("d"))
    assert await registry.devices.purge(APP, later(registry.clock.now(), -DAY_MS)) == 0
    assert await states(registry) == {"d": False}
