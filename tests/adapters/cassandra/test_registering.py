"""A token has one owner at most, wherever a registration breaks off and whoever comes between its steps."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio

from tests.adapters.cassandra.steps import Killed, Steps, killed
from tests.contract.registries import Keyspace, wake_ups_closed
from tests.shows import shows
from waypost.domain.device import Platform, Registration, nobody_with
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.domain.time import Instant
from waypost.stores.cassandra.devices import CassandraDevices
from waypost.stores.cassandra.settings import CassandraSettings

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

APP = AppId("demo")
NOW = Instant(1_800_000_000_000)
NO_CAP = 0
IOS, ANDROID = Platform("ios"), Platform("android")


class People:
    """Two users and a token that nobody else knows: each play has its own."""

    numbers = itertools.count()

    def __init__(self) -> None:
        n = next(self.numbers)
        self.ann, self.bob = UserId(f"ann{n}"), UserId(f"bob{n}")
        self.token = f"t{n}"

    def called(
        self, user_id: UserId, device_id: str = "d", token: str | None = None, platform: Platform = IOS
    ) -> Registration:
        """A registration call."""
        return Registration(APP, user_id, DeviceId(device_id), platform, token or self.token)

    async def owners(self, devices: CassandraDevices) -> list[UserId]:
        """Who has the token on an active device."""
        return await owners(devices, self.token, self.ann, self.bob)


@pytest.fixture(scope="module")
def tables(cassandra_hosts: tuple[str, ...]) -> Keyspace:
    """A keyspace for the tests here."""
    return Keyspace(cassandra_hosts)


@pytest_asyncio.fixture
async def settings(tables: Keyspace) -> AsyncIterator[CassandraSettings]:
    """An empty registry."""
    with wake_ups_closed():
        yield await tables.empty()


@asynccontextmanager
async def a_process(settings: CassandraSettings) -> AsyncIterator[CassandraDevices]:
    """The registry as a process of its own has it: nobody waits for anybody else in memory."""
    devices = CassandraDevices(settings)
    yield devices
    await devices.close()


async def owners(devices: CassandraDevices, token: str, *users: UserId) -> list[UserId]:
    """Who of *users* has the token on an active device."""
    found = await devices.for_users([(APP, user) for user in users])
    return [device.user_id for owned in found for device in owned if device.token == token]


def of_nobody(_: People) -> list[Registration]:
    """It is new."""
    return []


def of_another_user(people: People) -> list[Registration]:
    """Ann has it."""
    return [people.called(people.ann)]


def of_another_device(people: People) -> list[Registration]:
    """Bob has it, on another device."""
    return [people.called(people.bob, "old")]


def in_place_of_another(people: People) -> list[Registration]:
    """Ann has it, and Bob's device had another one and another platform."""
    return [people.called(people.ann), people.called(people.bob, token=f"{people.token} before", platform=ANDROID)]


Before = Callable[[People], list[Registration]]
BEFORE = [of_nobody, of_another_user, of_another_device, in_place_of_another]


async def each_step(play: Callable[[int], Awaitable[bool]]) -> int:
    """Play it again with another step each time, until there are no more of them; how many there were."""
    n = 1
    while await play(n):
        n += 1
    return n - 1


@shows("S1-34")
@pytest.mark.parametrize("before", BEFORE)
async def test_killed_between_any_two_steps_it_leaves_one_owner_at_most_and_the_next_call_repairs_it(
    settings: CassandraSettings, before: Before
) -> None:
    """Requirements S1-34."""
    async with a_process(settings) as victim, a_process(settings) as next_one:

        async def play(n: int) -> bool:
            people, steps = People(), Steps(n, killed)
            for call in before(people):
                await victim.upsert(call, NOW, NO_CAP)
            async with steps.counted(victim._link):
                with contextlib.suppress(Killed):
                    await victim.upsert(people.called(people.bob), NOW, NO_CAP)
            assert len(await people.owners(next_one)) <= 1
            await next_one.upsert(people.called(people.bob), NOW, NO_CAP)
            assert await people.owners(next_one) == [people.bob]
            assert len(await next_one.of_user(APP, people.bob)) == 1
            return steps.came

        assert await each_step(play) >= 4


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("who", ["ann", "bob", "bob's other device"])
async def test_whoever_comes_between_any_two_steps_it_ends_with_one_owner(
    settings: CassandraSettings, before: Before, who: str
) -> None:
    async with a_process(settings) as one, a_process(settings) as another:

        async def play(n: int) -> bool:
            people = People()
            other = people.called(people.ann if who == "ann" else people.bob, "e" if "other" in who else "d")

            async def come_between() -> None:
                await another.upsert(other, NOW, NO_CAP)

            for call in before(people):
                await one.upsert(call, NOW, NO_CAP)
            steps = Steps(n, come_between)
            async with steps.counted(one._link):
                await one.upsert(people.called(people.bob), NOW, NO_CAP)
            assert len(await people.owners(one)) == 1
            return steps.came

        assert await each_step(play) >= 4


@pytest.mark.parametrize("before", BEFORE)
async def test_an_app_has_the_token_whoever_keeps_it_for_nobody_between_any_two_of_its_steps(
    settings: CassandraSettings, before: Before
) -> None:
    """And the other way round: it registers between any two steps of one who keeps it."""
    async with a_process(settings) as one, a_process(settings) as another:

        async def play(n: int, *, app_is_first: bool) -> bool:
            people = People()
            nobody = people.called(nobody_with(people.token))

            async def keep() -> None:
                kept = await another.keep(nobody, NOW)
                assert kept.token == people.token

            async def register() -> None:
                await another.upsert(people.called(people.bob), NOW, NO_CAP)

            for call in before(people):
                await one.upsert(call, NOW, NO_CAP)
            steps = Steps(n, keep if app_is_first else register)
            async with steps.counted(one._link):
                if app_is_first:
                    await one.upsert(people.called(people.bob), NOW, NO_CAP)
                else:
                    await one.keep(nobody, NOW)
            if steps.came:
                has = await owners(one, people.token, people.ann, people.bob, nobody.user_id)
                assert has == [people.bob]
            return steps.came

        assert await each_step(lambda n: play(n, app_is_first=True)) >= 4
        assert await each_step(lambda n: play(n, app_is_first=False)) >= 3


async def test_processes_that_register_one_token_for_many_users_at_once_leave_one_owner(
    settings: CassandraSettings,
) -> None:
    users = [UserId(f"u{n}") for n in range(24)]
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(a_process(settings)) for _ in range(3)]
        calls = (
            process.upsert(Registration(APP, user, DeviceId("d"), IOS, "t"), NOW, NO_CAP)
            for process, user in zip(itertools.cycle(processes), users, strict=False)
        )
        await asyncio.gather(*calls)
        assert len(await owners(processes[0], "t", *users)) == 1


async def test_processes_that_register_devices_of_one_user_at_once_keep_to_the_cap(settings: CassandraSettings) -> None:
    ann = UserId("ann")
    async with a_process(settings) as one, a_process(settings) as another:
        calls = (
            process.upsert(Registration(APP, ann, DeviceId(f"d{n}"), IOS, f"t{n}"), Instant(NOW + n), 3)
            for n, process in zip(range(12), itertools.cycle((one, another)), strict=False)
        )
        answers = await asyncio.gather(*calls)
        assert len(await one.of_user(APP, ann)) == 3
        assert sum(len(answer.pushed_out) for answer in answers) == 9
