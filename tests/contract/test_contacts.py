"""Contacts: addresses of people in the registry, which several users may share and no cap counts."""

from __future__ import annotations

import pytest

from tests.contract.registries import RegistryUnderTest
from waypost.domain.device import EMAIL, PHONE, Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.devices import Eviction

pytestmark = pytest.mark.asyncio

APP = AppId("demo")
ANN = UserId("ann")
BOB = UserId("bob")
MAILBOX = "family@example.com"


async def put(
    registry: RegistryUnderTest, user: UserId, name: str, platform: Platform, token: str, cap: int = 0
) -> int:
    """Register a minute after whatever was before; return how many devices were pushed out."""
    call = Registration(APP, user, DeviceId(name), platform, token)
    return len((await registry.devices.upsert(call, registry.clock.advance(MINUTE_MS), cap)).pushed_out)


async def names(registry: RegistryUnderTest, user: UserId) -> list[str]:
    """List the ids of a user's active devices."""
    return [device.device_id for device in (await registry.devices.for_users([(APP, user)]))[0]]


async def test_users_share_a_mailbox(registry: RegistryUnderTest) -> None:
    await put(registry, ANN, "email", EMAIL, MAILBOX)
    await put(registry, BOB, "email", EMAIL, MAILBOX)
    assert (await names(registry, ANN), await names(registry, BOB)) == (["email"], ["email"])


async def test_a_dead_mailbox_of_one_user_stays_with_the_other_until_it_refuses_that_one_too(
    registry: RegistryUnderTest,
) -> None:
    await put(registry, ANN, "email", EMAIL, MAILBOX)
    await put(registry, BOB, "email", EMAIL, MAILBOX)
    ((anns,),) = await registry.devices.for_users([(APP, ANN)])
    soon = later(registry.clock.now(), MINUTE_MS)
    assert await registry.devices.evict([Eviction(APP, anns.token_hash, soon)]) == [(APP, ANN)]
    assert (await names(registry, ANN), await names(registry, BOB)) == ([], ["email"])


async def test_no_cap_counts_a_contact(registry: RegistryUnderTest) -> None:
    """Devices push out devices alone, and a contact none."""
    await put(registry, ANN, "email", EMAIL, MAILBOX, cap=1)
    await put(registry, ANN, "ios-1", Platform("ios"), "t1", cap=1)
    assert await put(registry, ANN, "phone", PHONE, "+491701234567", cap=1) == 0
    assert await put(registry, ANN, "ios-2", Platform("ios"), "t2", cap=1) == 1
    assert await names(registry, ANN) == ["email", "ios-2", "phone"]


async def test_a_mailbox_finds_all_users_who_have_it_or_the_registry_says_that_it_cannot_look(
    registry: RegistryUnderTest,
) -> None:
    for user in (BOB, ANN):
        await put(registry, user, "email", EMAIL, MAILBOX)
    await put(registry, ANN, "ios-1", Platform("ios"), "family@example.com.token")
    found = await registry.devices.with_contact(APP, MAILBOX, 10)
    if found is None:
        assert "Cassandra" in type(registry.devices).__name__ or "Cached" in type(registry.devices).__name__
        return
    assert [(device.user_id, device.platform) for device in found] == [(ANN, EMAIL), (BOB, EMAIL)]
    assert [device.user_id for device in await registry.devices.with_contact(APP, MAILBOX, 1) or []] == [ANN]
    assert await registry.devices.with_contact(AppId("other"), MAILBOX, 10) == []
    await registry.devices.deactivate(APP, ANN, DeviceId("email"))
    assert [device.user_id for device in await registry.devices.with_contact(APP, MAILBOX, 10) or []] == [BOB]
