"""Devices: who owns which device; a token has one owner at a time; deactivation keeps the row."""

from __future__ import annotations

import asyncio
import itertools
from typing import cast

import pytest

from tests.contract.registries import RegistryUnderTest
from tests.shows import shows
from waypost.domain.device import Device, Platform, Registration, SubscriptionKeys, TokenUse
from waypost.domain.ids import AppId, DeviceId, UserId, token_hash
from waypost.domain.time import MINUTE_MS, later
from waypost.domain.words import Words
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


async def register(registry: RegistryUnderTest, call: Registration, cap: int = NO_CAP) -> Registered:
    """Register now, a minute after whatever was before."""
    return await registry.devices.upsert(call, registry.clock.advance(MINUTE_MS), cap)


async def active(registry: RegistryUnderTest, user_id: UserId = ANN, app: AppId = APP) -> list[str]:
    """The ids of a user's active devices."""
    return [device.device_id for device in (await registry.devices.for_users([(app, user_id)]))[0]]


async def only(registry: RegistryUnderTest, device_id: str = "d", user_id: UserId = ANN) -> Device:
    """One device as stored, active or not."""
    owned = await registry.devices.of_user(APP, user_id, inactive=True)
    return next(device for device in owned if device.device_id == device_id)


@shows("S1-38", "S3-131")
async def test_a_first_call_creates_a_device(registry: RegistryUnderTest) -> None:
    registered = await register(registry, called("d", "t1"))
    now = registry.clock.now()
    assert registered.created
    assert registered.pushed_out == ()
    assert registered.device == Device(APP, ANN, DeviceId("d"), Platform("ios"), "t1", now, now, now, now)
    assert (await registry.devices.for_users([(APP, ANN)])) == [[registered.device]]


async def test_a_token_is_looked_up_for_the_active_device_that_has_it(registry: RegistryUnderTest) -> None:
    """Each in the order asked; what is inactive, another app's or nobody's is None."""
    first = (await register(registry, called("d", "t1"))).device
    await register(registry, called("e", "t2", BOB))
    assert await registry.devices.deactivate(APP, BOB, DeviceId("e"))
    await register(registry, called("f", "t3", BOB, AppId("other")))
    assert await registry.devices.with_tokens(APP, ["t3", "t2", "t1", "nobody", "t1"]) == [
        None,
        None,
        first,
        None,
        first,
    ]
    taken = (await register(registry, called("g", "t1", BOB))).device
    assert await registry.devices.with_tokens(APP, ["t1"]) == [taken]
    assert await registry.devices.with_tokens(APP, []) == []


class _Newer(Words):
    """Words of a version that comes after this one."""

    CAR_KEY = "car_key"


async def test_a_use_that_only_a_newer_version_knows_stops_nobody(registry: RegistryUnderTest) -> None:
    """Its device is read with the word as it stands, and those beside it as always."""
    use = cast("TokenUse", _Newer.CAR_KEY)
    await register(registry, Registration(APP, ANN, DeviceId("key"), IOS, "t1", token_use=use))
    await register(registry, called("phone", "t2"))
    await register(registry, called("other", "t3", BOB))
    for _ in range(2):
        found = await registry.devices.for_users([(APP, ANN), (APP, BOB)])
        uses = [{device.device_id: device.token_use for device in devices} for devices in found]
        assert uses == [{"key": "car_key", "phone": TokenUse.ALERT}, {"other": TokenUse.ALERT}]


@shows("S1-10", "S1-95", "S1-132", "S3-25")
async def test_all_that_an_app_says_of_itself_is_kept(registry: RegistryUnderTest) -> None:
    keys = SubscriptionKeys(b"\4" + b"k" * 64, b"a" * 16)
    call = Registration(APP, ANN, DeviceId("d"), Platform("web"), "https://push.example/1", keys, "1.2", "17", "de-CH")
    await register(registry, call)
    device = await only(registry)
    assert (device.platform, device.token, device.keys) == (Platform("web"), "https://push.example/1", keys)
    assert (device.app_version, device.os_version, device.locale) == ("1.2", "17", "de-CH")


@shows("S1-10")
@pytest.mark.parametrize("token", ["t1", "t2"])
async def test_a_later_call_with_a_new_version_updates_the_same_row(token: str, registry: RegistryUnderTest) -> None:
    """Requirements S1-10: whether its token is the same or a new one."""
    before = Registration(APP, ANN, DeviceId("d"), IOS, "t1", None, "1.2", "17", "de-CH")
    after = Registration(APP, ANN, DeviceId("d"), IOS, token, None, "1.3", "18", "fr-CH")
    assert (await register(registry, before)).created
    assert not (await register(registry, after)).created
    (device,) = await registry.devices.of_user(APP, ANN, inactive=True)
    assert (device.token, device.app_version, device.os_version, device.locale) == (token, "1.3", "18", "fr-CH")
    assert await registry.devices.for_users([(APP, ANN)]) == [[device]]


async def test_the_use_of_a_token_is_kept_and_follows_the_last_call(registry: RegistryUnderTest) -> None:
    for use in (TokenUse.VOIP, TokenUse.ALERT):
        call = Registration(APP, ANN, DeviceId("d"), Platform("ios"), "t1", token_use=use)
        assert (await register(registry, call)).device.token_use is use
        assert (await only(registry)).token_use is use


@shows("S1-97", "S3-18", "S3-19")
async def test_the_same_token_again_moves_last_seen_alone(registry: RegistryUnderTest) -> None:
    first = await register(registry, called("d", "t1"))
    again = await register(registry, called("d", "t1"))
    now = registry.clock.now()
    assert not again.created
    assert (again.device.last_seen_at, again.device.last_used_at) == (now, now)
    assert again.device.token_updated_at == first.device.token_updated_at
    assert again.device.registered_at == first.device.registered_at


@shows("S1-45", "S1-97")
async def test_a_new_token_moves_its_time(registry: RegistryUnderTest) -> None:
    await register(registry, called("d", "t1"))
    changed = await register(registry, called("d", "t2"))
    assert changed.device.token_updated_at == registry.clock.now()
    assert changed.device.token == "t2"
    assert await active(registry) == ["d"]


@shows("S1-44", "S3-25")
async def test_a_token_is_taken_from_another_user(registry: RegistryUnderTest) -> None:
    assert (await register(registry, called("d", "t", ANN))).taken_from == ()
    assert (await register(registry, called("d", "t", BOB))).taken_from == (ANN,)
    assert (await register(registry, called("d", "t", BOB))).taken_from == (), "it was BOB's already"
    assert await active(registry, ANN) == []
    assert await active(registry, BOB) == ["d"]
    assert not (await only(registry, "d", ANN)).active


@shows("S3-24")
async def test_a_token_is_taken_from_another_device_of_the_user(registry: RegistryUnderTest) -> None:
    await register(registry, called("old", "t"))
    registered = await register(registry, called("new", "t"))
    assert (registered.pushed_out, registered.taken_from) == ((), ())
    assert await active(registry) == ["new"]


async def test_a_token_goes_back_and_forth(registry: RegistryUnderTest) -> None:
    for user_id in (ANN, BOB, ANN):
        await register(registry, called("d", "t", user_id))
    assert (await active(registry, ANN), await active(registry, BOB)) == (["d"], [])


async def test_the_same_token_in_another_app_is_another_token(registry: RegistryUnderTest) -> None:
    await register(registry, called("d", "t"))
    await register(registry, called("d", "t", app=AppId("other")))
    assert await active(registry) == ["d"]
    assert await active(registry, app=AppId("other")) == ["d"]


@shows("S1-96", "S1-98")
async def test_a_hundred_parallel_calls_for_one_device_leave_one_row(registry: RegistryUnderTest) -> None:
    """Requirements S1: an upsert is safe against races."""
    calls = (registry.devices.upsert(called("d", f"t{n}"), later(registry.clock.now(), n), NO_CAP) for n in range(100))
    answers = await asyncio.gather(*calls)
    assert sum(answer.created for answer in answers) == 1
    assert await active(registry) == ["d"]
    assert len(await registry.devices.of_user(APP, ANN, inactive=True)) == 1


@shows("S1-44", "S1-132")
async def test_parallel_calls_for_one_token_leave_one_owner(registry: RegistryUnderTest) -> None:
    calls = (
        registry.devices.upsert(called("d", "t", UserId(f"u{n}")), later(registry.clock.now(), n), NO_CAP)
        for n in range(50)
    )
    await asyncio.gather(*calls)
    found = await registry.devices.for_users([(APP, UserId(f"u{n}")) for n in range(50)])
    assert sum(map(len, found)) == 1


@shows("S1-140")
async def test_above_the_cap_the_one_seen_longest_ago_goes(registry: RegistryUnderTest) -> None:
    for name in ("a", "b", "c"):
        await register(registry, called(name, f"t-{name}"), cap=3)
    await register(registry, called("a", "t-a"), cap=3)
    registered = await register(registry, called("d", "t-d"), cap=3)
    assert registered.pushed_out == ("b",)
    assert await active(registry) == ["a", "c", "d"]
    assert not (await only(registry, "b")).active


async def test_a_smaller_cap_pushes_out_several_those_seen_longest_ago_first(registry: RegistryUnderTest) -> None:
    for name in ("c", "a", "b"):
        await register(registry, called(name, f"t-{name}"))
    assert (await register(registry, called("d", "t-d"), cap=2)).pushed_out == ("c", "a")
    assert await active(registry) == ["b", "d"]


async def test_a_cap_of_one_keeps_the_device_that_calls(registry: RegistryUnderTest) -> None:
    now = registry.clock.now()
    await registry.devices.upsert(called("b", "t-b"), now, 1)
    assert (await registry.devices.upsert(called("a", "t-a"), now, 1)).pushed_out == ("b",)
    assert await active(registry) == ["a"]


async def test_a_cap_counts_active_devices_of_one_user_alone(registry: RegistryUnderTest) -> None:
    await register(registry, called("gone", "t1"), cap=2)
    await registry.devices.deactivate(APP, ANN, DeviceId("gone"))
    await register(registry, called("bobs", "t2", BOB), cap=2)
    await register(registry, called("x", "t3"), cap=2)
    assert (await register(registry, called("y", "t4"), cap=2)).pushed_out == ()
    assert await active(registry, BOB) == ["bobs"]


@shows("S1-139", "S3-24")
async def test_no_cap_keeps_all(registry: RegistryUnderTest) -> None:
    for n in range(60):
        await register(registry, called(f"d{n:02}", f"t{n}"))
    assert len(await active(registry)) == 60


@shows("S1-33", "S1-34")
async def test_for_users_answers_in_the_order_asked_each_by_platform_and_id(registry: RegistryUnderTest) -> None:
    await register(registry, called("b", "t1", platform=Platform("web")))
    await register(registry, called("z", "t2", platform=Platform("android")))
    await register(registry, called("c", "t3", platform=Platform("ios")))
    await register(registry, called("a", "t4", platform=Platform("ios")))
    await register(registry, called("x", "t5", BOB))
    asked = [(APP, BOB), (APP, UserId("nobody")), (APP, ANN), (AppId("other"), ANN), (APP, BOB)]
    found = await registry.devices.for_users(asked)
    assert [[device.device_id for device in devices] for devices in found] == [
        ["x"],
        [],
        ["z", "a", "c", "b"],
        [],
        ["x"],
    ]
    assert await registry.devices.for_users([]) == []


async def test_a_users_devices_newest_registration_first(registry: RegistryUnderTest) -> None:
    for name in ("a", "b", "c"):
        await register(registry, called(name, f"t-{name}"))
    await register(registry, called("a", "t-a"))
    await registry.devices.deactivate(APP, ANN, DeviceId("b"))
    assert [device.device_id for device in await registry.devices.of_user(APP, ANN)] == ["c", "a"]
    assert [device.device_id for device in await registry.devices.of_user(APP, ANN, inactive=True)] == ["c", "b", "a"]


@shows("S3-23", "S3-50")
async def test_a_deactivated_device_keeps_its_row_and_gets_nothing(registry: RegistryUnderTest) -> None:
    await register(registry, called("d", "t"))
    assert await registry.devices.deactivate(APP, ANN, DeviceId("d"))
    assert await active(registry) == []
    assert (await only(registry)).token == "t"
    assert not await registry.devices.deactivate(APP, ANN, DeviceId("d"))
    assert not await registry.devices.deactivate(APP, BOB, DeviceId("d"))


@shows("S1-96", "S3-18")
async def test_a_deactivated_device_comes_back_by_registering(registry: RegistryUnderTest) -> None:
    await register(registry, called("d", "t"))
    await registry.devices.deactivate(APP, ANN, DeviceId("d"))
    registered = await register(registry, called("d", "t"))
    assert (registered.created, registered.device.active) == (False, True)
    assert await active(registry) == ["d"]


@shows("S3-58")
async def test_a_dead_token_goes_if_it_was_not_registered_since(registry: RegistryUnderTest) -> None:
    registered = await register(registry, called("d", "t"))
    seen = registered.device.last_seen_at
    assert await registry.devices.evict([Eviction(APP, token_hash("t"), seen)]) == [], "the same moment is not before"
    assert await active(registry) == ["d"]
    assert await registry.devices.evict([Eviction(APP, token_hash("t"), later(seen, 1))]) == [(APP, ANN)]
    assert await active(registry) == []


@shows("S1-43")
async def test_a_token_registered_again_after_its_death_stays(registry: RegistryUnderTest) -> None:
    """Also one that repeated the same token: the app runs, so the token may live."""
    await register(registry, called("d", "t"))
    died = registry.clock.advance(MINUTE_MS)
    await register(registry, called("d", "t"))
    assert await registry.devices.evict([Eviction(APP, token_hash("t"), died)]) == []
    assert await active(registry) == ["d"]


@shows("S1-43")
async def test_exactly_the_token_named_is_evicted(registry: RegistryUnderTest) -> None:
    await register(registry, called("d", "old"))
    await register(registry, called("d", "new"))
    await register(registry, called("e", "other"))
    tomorrow = later(registry.clock.now(), MINUTE_MS)
    assert await registry.devices.evict([Eviction(APP, token_hash("old"), tomorrow)]) == []
    assert await registry.devices.evict([Eviction(AppId("x"), token_hash("new"), tomorrow)]) == []
    assert await registry.devices.evict([Eviction(APP, token_hash("new"), tomorrow)]) == [(APP, ANN)]
    assert await active(registry) == ["e"]


async def test_evictions_come_in_batches_and_repeats_count_once(registry: RegistryUnderTest) -> None:
    for n in range(5):
        await register(registry, called(f"d{n}", f"t{n}", ANN if n % 2 else BOB))
    tomorrow = later(registry.clock.now(), MINUTE_MS)
    dead = [Eviction(APP, token_hash(f"t{n}"), tomorrow) for n in (1, 3, 3, 4)]
    assert sorted(await registry.devices.evict(dead)) == [(APP, ANN), (APP, ANN), (APP, BOB)]
    assert await registry.devices.evict(dead) == []
    assert await registry.devices.evict([]) == []
    assert await active(registry, BOB) == ["d0", "d2"]


async def test_a_use_moves_last_used_forward_and_never_back(registry: RegistryUnderTest) -> None:
    await register(registry, called("d", "t"))
    at = later(registry.clock.now(), MINUTE_MS)
    await registry.devices.touch([Use(APP, ANN, DeviceId("d"), at), Use(APP, ANN, DeviceId("nobody"), at)])
    assert (await only(registry)).last_used_at == at
    await registry.devices.touch([Use(APP, ANN, DeviceId("d"), later(at, -1))])
    device = await only(registry)
    assert device.last_used_at == at
    assert device.last_seen_at < at, "only a registration call is seen"
    await registry.devices.touch([])


async def test_many_uses_at_once_are_all_noted(registry: RegistryUnderTest) -> None:
    """As many as a page of the journal may tell of are written in parts."""
    await register(registry, called("first", "t1"))
    await register(registry, called("last", "t2"))
    at = later(registry.clock.now(), MINUTE_MS)
    nobodys = [Use(APP, ANN, DeviceId(f"nobody-{n}"), at) for n in range(400)]
    named = [Use(APP, ANN, DeviceId(name), at) for name in ("first", "last")]
    await registry.devices.touch([named[0], *nobodys, named[1]])
    devices = await registry.devices.of_user(APP, ANN)
    assert {each.device_id: each.last_used_at for each in devices} == {"first": at, "last": at}


async def test_a_walk_goes_by_pages_of_keys(registry: RegistryUnderTest) -> None:
    for user in ("a", "b", "c"):
        for name in ("x", "y"):
            await register(registry, called(name, f"t-{user}-{name}", UserId(user)))
    await register(registry, called("x", "t", UserId("b"), app=AppId("other")))
    await registry.devices.deactivate(APP, UserId("b"), DeviceId("x"))
    walked: list[tuple[UserId, DeviceId]] = []
    while page := await registry.devices.scan(APP, walked[-1] if walked else None, 2):
        assert len(page) <= 2
        walked += [(device.user_id, device.device_id) for device in page]
    assert sorted(walked) == [("a", "x"), ("a", "y"), ("b", "y"), ("c", "x"), ("c", "y")]
    users = [user_id for user_id, _ in itertools.groupby(walked, key=lambda key: key[0])]
    assert len(users) == 3, "each user's devices come together"
    assert [key[1] for key in walked if key[0] == "c"] == ["x", "y"], "and by id"


@shows("S3-33")
async def test_a_device_id_may_be_any_text(registry: RegistryUnderTest) -> None:
    names = ["ä", "''", '"; --', "a b", "\u2028", "😀", "\x01"]
    for name in names:
        await register(registry, called(name, f"t-{name}", UserId(f"u{name}")))
    found = await registry.devices.for_users([(APP, UserId(f"u{name}")) for name in names])
    assert [[device.device_id for device in devices] for devices in found] == [[name] for name in names]


@shows("S3-26")
async def test_an_erased_user_has_no_row_and_their_tokens_are_free(registry: RegistryUnderTest) -> None:
    """Deactivated devices go, too; what was registered later stays, and so does everybody else."""
    await register(registry, called("d1", "t1"))
    await register(registry, called("d2", "t2"))
    await registry.devices.deactivate(APP, ANN, DeviceId("d2"))
    await register(registry, called("b", "t3", BOB))
    until = registry.clock.now()
    await register(registry, called("d3", "t4"))
    for _ in range(2):
        await registry.devices.erase(APP, ANN, until)
        owned = await registry.devices.of_user(APP, ANN, inactive=True)
        assert [device.device_id for device in owned] == ["d3"]
        assert await active(registry) == ["d3"]
    await registry.devices.erase(APP, ANN, registry.clock.now())
    assert await registry.devices.of_user(APP, ANN, inactive=True) == []
    assert await active(registry, BOB) == ["b"]
    taken = await register(registry, called("new", "t1", BOB))
    assert taken.taken_from == ()
    again = await register(registry, called("d1", "t2"))
    assert again.created
    assert again.taken_from == ()
