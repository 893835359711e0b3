"""Devices: who owns which device; a token has one owner at a time; deactivation keeps the row."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.stores import StoreUnderTest
from waypost.domain.device import Device, Platform, Registration, SubscriptionKeys, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.devices import Eviction, Registered, Use

pytestmark = pytest.mark.asyncio

APP = AppId("demo")
ANN = UserId("ann")
BOB = UserId("bob")
NO_CAP = 0
IOS = Platform("ios")


def called(
    device_id: str, token: str, user_id: UserId = ANN, app: AppId = APP, platform: Platform = IOS
) -> Registration:
    """A registration call."""
    return Registration(app, user_id, DeviceId(device_id), platform, token)


async def register(store: StoreUnderTest, call: Registration, cap: int = NO_CAP) -> Registered:
    """Register now, a minute after whatever was before."""
    return await store.devices.upsert(call, store.clock.advance(MINUTE_MS), cap)


async def active(store: StoreUnderTest, user_id: UserId = ANN, app: AppId = APP) -> list[str]:
    """The ids of a user's active devices."""
    return [device.device_id for device in (await store.devices.for_users([(app, user_id)]))[0]]


async def only(store: StoreUnderTest, device_id: str = "d", user_id: UserId = ANN) -> Device:
    """One device as stored, active or not."""
    owned = await store.devices.of_user(APP, user_id, inactive=True)
    return next(device for device in owned if device.device_id == device_id)


async def test_a_first_call_creates_a_device(store: StoreUnderTest) -> None:
    registered = await register(store, called("d", "t1"))
    now = store.clock.now()
    assert registered.created
    assert registered.pushed_out == ()
    assert registered.device == Device(APP, ANN, DeviceId("d"), Platform("ios"), "t1", now, now, now, now)
    assert (await store.devices.for_users([(APP, ANN)])) == [[registered.device]]


async def test_all_that_an_app_says_of_itself_is_kept(store: StoreUnderTest) -> None:
    keys = SubscriptionKeys(b"\4" + b"k" * 64, b"a" * 16)
    call = Registration(APP, ANN, DeviceId("d"), Platform("web"), "https://push.example/1", keys, "1.2", "17", "de-CH")
    await register(store, call)
    device = await only(store)
    assert (device.platform, device.token, device.keys) == (Platform("web"), "https://push.example/1", keys)
    assert (device.app_version, device.os_version, device.locale) == ("1.2", "17", "de-CH")


async def test_the_use_of_a_token_is_kept_and_follows_the_last_call(store: StoreUnderTest) -> None:
    for use in (TokenUse.VOIP, TokenUse.ALERT):
        call = Registration(APP, ANN, DeviceId("d"), Platform("ios"), "t1", token_use=use)
        assert (await register(store, call)).device.token_use is use
        assert (await only(store)).token_use is use


async def test_the_same_token_again_moves_last_seen_alone(store: StoreUnderTest) -> None:
    first = await register(store, called("d", "t1"))
    again = await register(store, called("d", "t1"))
    now = store.clock.now()
    assert not again.created
    assert (again.device.last_seen_at, again.device.last_used_at) == (now, now)
    assert again.device.token_updated_at == first.device.token_updated_at
    assert again.device.registered_at == first.device.registered_at


async def test_a_new_token_moves_its_time(store: StoreUnderTest) -> None:
    await register(store, called("d", "t1"))
    changed = await register(store, called("d", "t2"))
    assert changed.device.token_updated_at == store.clock.now()
    assert changed.device.token == "t2"
    assert await active(store) == ["d"]


async def test_a_token_is_taken_from_another_user(store: StoreUnderTest) -> None:
    assert (await register(store, called("d", "t", ANN))).taken_from == ()
    assert (await register(store, called("d", "t", BOB))).taken_from == (ANN,)
    assert (await register(store, called("d", "t", BOB))).taken_from == (), "it was BOB's already"
    assert await active(store, ANN) == []
    assert await active(store, BOB) == ["d"]
    assert not (await only(store, "d", ANN)).active


async def test_a_token_is_taken_from_another_device_of_the_user(store: StoreUnderTest) -> None:
    await register(store, called("old", "t"))
    registered = await register(store, called("new", "t"))
    assert (registered.pushed_out, registered.taken_from) == ((), ())
    assert await active(store) == ["new"]


async def test_a_token_goes_back_and_forth(store: StoreUnderTest) -> None:
    for user_id in (ANN, BOB, ANN):
        await register(store, called("d", "t", user_id))
    assert (await active(store, ANN), await active(store, BOB)) == (["d"], [])


async def test_the_same_token_in_another_app_is_another_token(store: StoreUnderTest) -> None:
    await register(store, called("d", "t"))
    await register(store, called("d", "t", app=AppId("other")))
    assert await active(store) == ["d"]
    assert await active(store, app=AppId("other")) == ["d"]


async def test_a_hundred_parallel_calls_for_one_device_leave_one_row(store: StoreUnderTest) -> None:
    """Requirements S1: an upsert is safe against races."""
    calls = (store.devices.upsert(called("d", f"t{n}"), later(store.clock.now(), n), NO_CAP) for n in range(100))
    answers = await asyncio.gather(*calls)
    assert sum(answer.created for answer in answers) == 1
    assert await active(store) == ["d"]
    assert len(await store.devices.of_user(APP, ANN, inactive=True)) == 1


async def test_parallel_calls_for_one_token_leave_one_owner(store: StoreUnderTest) -> None:
    calls = (
        store.devices.upsert(called("d", "t", UserId(f"u{n}")), later(store.clock.now(), n), NO_CAP) for n in range(50)
    )
    await asyncio.gather(*calls)
    found = await store.devices.for_users([(APP, UserId(f"u{n}")) for n in range(50)])
    assert sum(map(len, found)) == 1


async def test_above_the_cap_the_one_seen_longest_ago_goes(store: StoreUnderTest) -> None:
    for name in ("a", "b", "c"):
        await register(store, called(name, f"t-{name}"), cap=3)
    await register(store, called("a", "t-a"), cap=3)
    registered = await register(store, called("d", "t-d"), cap=3)
    assert registered.pushed_out == ("b",)
    assert await active(store) == ["a", "c", "d"]
    assert not (await only(store, "b")).active


async def test_a_smaller_cap_pushes_out_several_those_seen_longest_ago_first(store: StoreUnderTest) -> None:
    for name in ("c", "a", "b"):
        await register(store, called(name, f"t-{name}"))
    assert (await register(store, called("d", "t-d"), cap=2)).pushed_out == ("c", "a")
    assert await active(store) == ["b", "d"]


async def test_a_cap_of_one_keeps_the_device_that_calls(store: StoreUnderTest) -> None:
    now = store.clock.now()
    await store.devices.upsert(called("b", "t-b"), now, 1)
    assert (await store.devices.upsert(called("a", "t-a"), now, 1)).pushed_out == ("b",)
    assert await active(store) == ["a"]


async def test_a_cap_counts_active_devices_of_one_user_alone(store: StoreUnderTest) -> None:
    await register(store, called("gone", "t1"), cap=2)
    await store.devices.deactivate(APP, ANN, DeviceId("gone"))
    await register(store, called("bobs", "t2", BOB), cap=2)
    await register(store, called("x", "t3"), cap=2)
    assert (await register(store, called("y", "t4"), cap=2)).pushed_out == ()
    assert await active(store, BOB) == ["bobs"]


async def test_no_cap_keeps_all(store: StoreUnderTest) -> None:
    for n in range(60):
        await register(store, called(f"d{n:02}", f"t{n}"))
    assert len(await active(store)) == 60


async def test_for_users_answers_in_the_order_asked_each_by_platform_and_id(store: StoreUnderTest) -> None:
    await register(store, called("b", "t1", platform=Platform("web")))
    await register(store, called("z", "t2", platform=Platform("android")))
    await register(store, called("c", "t3", platform=Platform("ios")))
    await register(store, called("a", "t4", platform=Platform("ios")))
    await register(store, called("x", "t5", BOB))
    asked = [(APP, BOB), (APP, UserId("nobody")), (APP, ANN), (AppId("other"), ANN), (APP, BOB)]
    found = await store.devices.for_users(asked)
    assert [[device.device_id for device in devices] for devices in found] == [
        ["x"],
        [],
        ["z", "a", "c", "b"],
        [],
        ["x"],
    ]
    assert await store.devices.for_users([]) == []


async def test_a_users_devices_newest_registration_first(store: StoreUnderTest) -> None:
    for name in ("a", "b", "c"):
        await register(store, called(name, f"t-{name}"))
    await register(store, called("a", "t-a"))
    await store.devices.deactivate(APP, ANN, DeviceId("b"))
    assert [device.device_id for device in await store.devices.of_user(APP, ANN)] == ["c", "a"]
    assert [device.device_id for device in await store.devices.of_user(APP, ANN, inactive=True)] == ["c", "b", "a"]


async def test_a_deactivated_device_keeps_its_row_and_gets_nothing(store: StoreUnderTest) -> None:
    await register(store, called("d", "t"))
    assert await store.devices.deactivate(APP, ANN, DeviceId("d"))
    assert await active(store) == []
    assert (await only(store)).token == "t"
    assert not await store.devices.deactivate(APP, ANN, DeviceId("d"))
    assert not await store.devices.deactivate(APP, BOB, DeviceId("d"))


async def test_a_deactivated_device_comes_back_by_registering(store: StoreUnderTest) -> None:
    await register(store, called("d", "t"))
    await store.devices.deactivate(APP, ANN, DeviceId("d"))
    registered = await register(store, called("d", "t"))
    assert (registered.created, registered.device.active) == (False, True)
    assert await active(store) == ["d"]


async def test_a_dead_token_goes_if_it_was_not_registered_since(store: StoreUnderTest) -> None:
    registered = await register(store, called("d", "t"))
    seen = registered.device.last_seen_at
    assert await store.devices.evict([Eviction(APP, token_hash("t"), seen)]) == [], "the same moment is not before"
    assert await active(store) == ["d"]
    assert await store.devices.evict([Eviction(APP, token_hash("t"), later(seen, 1))]) == [(APP, ANN)]
    assert await active(store) == []


async def test_a_token_registered_again_after_its_death_stays(store: StoreUnderTest) -> None:
    """Also one that repeated the same token: the app runs, so the token may live."""
    await register(store, called("d", "t"))
    died = store.clock.advance(MINUTE_MS)
    await register(store, called("d", "t"))
    assert await store.devices.evict([Eviction(APP, token_hash("t"), died)]) == []
    assert await active(store) == ["d"]


async def test_exactly_the_token_named_is_evicted(store: StoreUnderTest) -> None:
    await register(store, called("d", "old"))
    await register(store, called("d", "new"))
    await register(store, called("e", "other"))
    tomorrow = later(store.clock.now(), MINUTE_MS)
    assert await store.devices.evict([Eviction(APP, token_hash("old"), tomorrow)]) == []
    assert await store.devices.evict([Eviction(AppId("x"), token_hash("new"), tomorrow)]) == []
    assert await store.devices.evict([Eviction(APP, token_hash("new"), tomorrow)]) == [(APP, ANN)]
    assert await active(store) == ["e"]


async def test_evictions_come_in_batches_and_repeats_count_once(store: StoreUnderTest) -> None:
    for n in range(5):
        await register(store, called(f"d{n}", f"t{n}", ANN if n % 2 else BOB))
    tomorrow = later(store.clock.now(), MINUTE_MS)
    dead = [Eviction(APP, token_hash(f"t{n}"), tomorrow) for n in (1, 3, 3, 4)]
    assert sorted(await store.devices.evict(dead)) == [(APP, ANN), (APP, ANN), (APP, BOB)]
    assert await store.devices.evict(dead) == []
    assert await store.devices.evict([]) == []
    assert await active(store, BOB) == ["d0", "d2"]


async def test_a_use_moves_last_used_forward_and_never_back(store: StoreUnderTest) -> None:
    await register(store, called("d", "t"))
    at = later(store.clock.now(), MINUTE_MS)
    await store.devices.touch([Use(APP, ANN, DeviceId("d"), at), Use(APP, ANN, DeviceId("nobody"), at)])
    assert (await only(store)).last_used_at == at
    await store.devices.touch([Use(APP, ANN, DeviceId("d"), later(at, -1))])
    device = await only(store)
    assert device.last_used_at == at
    assert device.last_seen_at < at, "only a registration call is seen"
    await store.devices.touch([])


async def test_a_walk_goes_by_pages_of_keys(store: StoreUnderTest) -> None:
    for user in ("a", "b", "c"):
        for name in ("x", "y"):
            await register(store, called(name, f"t-{user}-{name}", UserId(user)))
    await register(store, called("x", "t", UserId("b"), app=AppId("other")))
    await store.devices.deactivate(APP, UserId("b"), DeviceId("x"))
    walked: list[tuple[UserId, DeviceId]] = []
    while page := await store.devices.scan(APP, walked[-1] if walked else None, 2):
        assert len(page) <= 2
        walked += [(device.user_id, device.device_id) for device in page]
    assert walked == [("a", "x"), ("a", "y"), ("b", "y"), ("c", "x"), ("c", "y")]


async def test_a_device_id_may_be_any_text(store: StoreUnderTest) -> None:
    names = ["ä", "''", '"; --', "a b", "\u2028", "😀", "\0"]
    for name in names:
        await register(store, called(name, f"t-{name}", UserId(f"u{name}")))
    found = await store.devices.for_users([(APP, UserId(f"u{name}")) for name in names])
    assert [[device.device_id for device in devices] for devices in found] == [[name] for name in names]
