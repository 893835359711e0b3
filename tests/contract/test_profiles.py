"""The profiles of users: put, changed at the same time, and forgotten as they were."""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import AppId, UserId
from waypost.domain.profile import ATTRIBUTES_LIMIT, Profile, ProfileChange
from waypost.domain.time import Instant
from waypost.ports.profiles import Profiles

pytestmark = pytest.mark.asyncio

DEMO, ANN, BOB = AppId("demo"), UserId("ann"), UserId("bob")
NOW = Instant(1_800_000_000_000)
SAID = Profile(
    locale="de-CH",
    time_zone="Europe/Zurich",
    attributes={"plan": "premium", "age": 34, "score": 0.5, "beta": True, "likes": ("tennis", "été")},
)


@pytest.fixture
def profiles(ledger_store: SqlUnderTest) -> Profiles:
    """The profiles of an empty store."""
    return ledger_store._opened.profiles


async def test_a_profile_comes_back_as_it_was_put(profiles: Profiles) -> None:
    assert await profiles.of(DEMO, [ANN, BOB]) == {}
    assert await profiles.of(DEMO, []) == {}
    assert await profiles.put(DEMO, ANN, SAID, NOW)
    assert await profiles.of(DEMO, [ANN, BOB]) == {ANN: SAID}
    assert not await profiles.put(DEMO, ANN, Profile(locale="fr"), NOW)
    assert await profiles.of(DEMO, [ANN]) == {ANN: Profile(locale="fr")}
    assert await profiles.of(AppId("other"), [ANN]) == {}


async def test_changes_at_the_same_time_are_all_there(profiles: Profiles) -> None:
    changes = [ProfileChange(named=frozenset(), attributes={f"n{n}": n}) for n in range(20)]
    await asyncio.gather(*(profiles.change(DEMO, ANN, each, NOW) for each in changes))
    named = ProfileChange(named=frozenset({"locale"}), locale="pt-BR", attributes={"n0": None, "n1": "one"})
    await profiles.change(DEMO, ANN, named, NOW)
    known = (await profiles.of(DEMO, [ANN]))[ANN]
    assert (known.locale, known.time_zone) == ("pt-BR", None)
    assert known.attributes == {"n1": "one"} | {f"n{n}": n for n in range(2, 20)}


async def test_pages_and_changes_of_several_processes_are_all_there(ledger_store: SqlUnderTest) -> None:
    stores = [ledger_store.ground_of(each).store.profiles for each in await ledger_store.open_workers(2)]
    changes = [ProfileChange(named=frozenset(), attributes={f"n{n}": n}) for n in range(40)]
    await asyncio.gather(
        *(
            stores[n % 2].change_many(DEMO, [(ANN, each), (BOB, each)], NOW)
            if n % 4 < 2
            else stores[n % 2].change(DEMO, ANN, each, NOW)
            for n, each in enumerate(changes)
        )
    )
    known = await stores[0].of(DEMO, [ANN, BOB])
    assert known[ANN].attributes == {f"n{n}": n for n in range(40)}
    assert known[BOB].attributes == {f"n{n}": n for n in range(40) if n % 4 < 2}


async def test_too_many_attributes_change_nothing(profiles: Profiles) -> None:
    full = Profile(attributes={f"n{n}": n for n in range(ATTRIBUTES_LIMIT)})
    await profiles.put(DEMO, ANN, full, NOW)
    assert await profiles.change(DEMO, ANN, ProfileChange(named=frozenset(), attributes={"more": 1}), NOW) is None
    assert await profiles.of(DEMO, [ANN]) == {ANN: full}


async def test_what_was_said_after_the_order_stays(profiles: Profiles) -> None:
    await profiles.put(DEMO, ANN, SAID, NOW)
    await profiles.erase(DEMO, ANN, Instant(NOW - 1))
    assert await profiles.of(DEMO, [ANN]) == {ANN: SAID}
    await profiles.erase(DEMO, ANN, NOW)
    assert await profiles.of(DEMO, [ANN]) == {}
