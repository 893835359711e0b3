"""Tokens that are kept for nobody: an app that registers one before, after or meanwhile has it."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.registries import RegistryUnderTest
from tests.contract.sql import SqlUnderTest
from tests.contract.test_devices import ANN, APP, NO_CAP, active, called, register
from waypost.domain.device import nobody_with
from waypost.domain.ids import DeviceId
from waypost.domain.time import MINUTE_MS

pytestmark = pytest.mark.asyncio


async def test_a_token_that_nobody_has_is_kept_for_nobody(registry: RegistryUnderTest) -> None:
    """Kept again it stays as it is; what was deactivated is kept anew."""
    for _ in range(2):
        call = called("d", "t", nobody_with("t"))
        kept = await registry.devices.keep(call, registry.clock.advance(MINUTE_MS))
        assert kept == (await registry.devices.for_users([(APP, nobody_with("t"))]))[0][0]
        assert await registry.devices.keep(call, registry.clock.advance(MINUTE_MS)) == kept
        assert await registry.devices.deactivate(APP, nobody_with("t"), DeviceId("d"))


async def test_a_token_that_somebody_has_by_then_stays_theirs(registry: RegistryUnderTest) -> None:
    """An app that registers it between a look-up and this would else get nothing until its next launch."""
    assert await registry.devices.with_tokens(APP, ["t"]) == [None]
    theirs = (await register(registry, called("phone", "t"))).device
    call = called("d", "t", nobody_with("t"))
    assert await registry.devices.keep(call, registry.clock.advance(MINUTE_MS)) == theirs
    assert await active(registry) == ["phone"]
    assert await registry.devices.of_user(APP, nobody_with("t"), inactive=True) == []
    assert await registry.devices.deactivate(APP, ANN, DeviceId("phone"))
    assert (await registry.devices.keep(call, registry.clock.advance(MINUTE_MS))).user_id == nobody_with("t")
    taken = await register(registry, called("phone", "t"))
    assert taken.taken_from == (nobody_with("t"),)
    assert await active(registry) == ["phone"]


async def test_whoever_registers_beside_those_who_keep_has_the_token(registry: RegistryUnderTest) -> None:
    for n in range(10):
        token, now = f"t{n}", registry.clock.now()
        keeping = [registry.devices.keep(called("d", token, nobody_with(token)), now) for _ in range(4)]
        await asyncio.gather(*keeping[:2], registry.devices.upsert(called(token, token), now, NO_CAP), *keeping[2:])
        assert [device.user_id for device in await registry.devices.with_tokens(APP, [token]) if device] == [ANN]
    assert len(await active(registry)) == 10


async def test_another_process_that_registers_meanwhile_has_the_token(ledger_store: SqlUnderTest) -> None:
    """Two writers: where both find the token free, the unique index has one of them begin again."""
    workers = await ledger_store.open_workers(2)
    one, another = [ledger_store.ground_of(worker).store.devices for worker in workers]
    for n in range(20):
        token, now = f"t{n}", ledger_store.clock.now()
        nobody = called("d", token, nobody_with(token))
        await asyncio.gather(
            one.keep(nobody, now), another.upsert(called(token, token), now, NO_CAP), one.keep(nobody, now)
        )
        (owner,) = await one.with_tokens(APP, [token])
        assert owner is not None
        assert owner.user_id == ANN
