"""What users want: kept, changed at the same time, forgotten, and known to every process as it is now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from tests.unit.domain.made import notification
from waypost.config import AppSettings, Config
from waypost.domain.content import Content
from waypost.domain.ids import AppId, UserId
from waypost.domain.preferences import PreferenceChange, Preferences, TypeChange, TypeChoice, TypeSettings
from waypost.domain.profile import Profile, ProfileChange
from waypost.domain.quiet_hours import Hours
from waypost.domain.submission import NotificationType
from waypost.domain.time import Instant
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import Facts
from waypost.features.preferences.knowing import KEPT_S, KnownUsers
from waypost.features.preferences.parts import facts
from waypost.stores.sql.preferences import Said, SqlPreferences
from waypost.stores.sql.transaction import OperationKind, Transaction
from waypost.stores.sql.user_changes import KEPT

pytestmark = pytest.mark.asyncio

DEMO, ANN, BOB = AppId("demo"), UserId("ann"), UserId("bob")
NOW = Instant(1_800_000_000_000)
NO_PROMOTION = PreferenceChange(types={"promotion": TypeChange(enabled=False)})
CONFIG = Config(apps={DEMO: AppSettings(types={NotificationType("promotion"): TypeSettings()})})


@pytest.fixture
def preferences(ledger_store: SqlUnderTest) -> SqlPreferences:
    """The preferences of an empty store."""
    return ledger_store._opened.preferences


async def test_what_is_said_comes_back_and_changes_field_by_field(preferences: SqlPreferences) -> None:
    assert await preferences.of(DEMO, [ANN, BOB]) == {}
    assert await preferences.of(DEMO, []) == {}
    said = await preferences.change(DEMO, ANN, NO_PROMOTION, NOW, "app")
    assert said == Said(Preferences(types={"promotion": TypeChoice(enabled=False)}), NOW, "app")
    more = PreferenceChange(channels={"sms": False}, quiet_hours=Hours(1_320, 420), frequency_limit=3, enabled=False)
    whole = Preferences(
        enabled=False,
        channels={"sms": False},
        types={"promotion": TypeChoice(enabled=False)},
        quiet_hours=Hours(1_320, 420),
        frequency_limit=3,
    )
    assert await preferences.change(DEMO, ANN, more, Instant(NOW + 1), "user") == Said(whole, Instant(NOW + 1), "user")
    assert await preferences.of(DEMO, [ANN, BOB]) == {ANN: Said(whole, Instant(NOW + 1), "user")}
    back = PreferenceChange(
        channels={"sms": None}, types={"promotion": None}, quiet_hours=None, frequency_limit=None, enabled=True
    )
    assert (await preferences.change(DEMO, ANN, back, NOW, "app")).preferences == Preferences()
    assert await preferences.of(AppId("other"), [ANN]) == {}


async def test_changes_at_the_same_time_are_all_kept(ledger_store: SqlUnderTest) -> None:
    workers = await ledger_store.open_workers(2)
    stores = [ledger_store.ground_of(worker).store.preferences for worker in workers]
    changes = [PreferenceChange(types={f"t{n}": TypeChange(enabled=False)}) for n in range(20)]
    await asyncio.gather(*(stores[n % 2].change(DEMO, ANN, each, NOW, "app") for n, each in enumerate(changes)))
    assert set((await stores[0].of(DEMO, [ANN]))[ANN].preferences.types) == {f"t{n}" for n in range(20)}


async def test_a_user_is_forgotten_as_they_were(preferences: SqlPreferences) -> None:
    await preferences.change(DEMO, ANN, NO_PROMOTION, NOW, "app")
    await preferences.erase(DEMO, ANN, Instant(NOW - 1))
    assert ANN in await preferences.of(DEMO, [ANN])
    await preferences.erase(DEMO, ANN, NOW)
    assert await preferences.of(DEMO, [ANN]) == {}


class Process:
    """What a process knows of users, and how often it read one."""

    def __init__(self, ground: Ground) -> None:
        self.ground = replace(ground, config=CONFIG, memory={})

    async def knows(self, user: UserId = ANN, kind: str = "promotion") -> Facts | None:
        """What decides about the next notification of a type."""
        made = notification(user_id=user, content=Content(title="Sale", type=kind))
        (found,) = await facts(self.ground, [made])
        return found

    def kept(self, user: UserId = ANN) -> bool:
        """Whether it has the user in memory."""
        assert self.ground.memory is not None
        return (DEMO, user) in self.ground.memory[KnownUsers]._known


@shows("S3-72")
async def test_a_change_counts_in_the_next_notification_of_every_process(ledger_store: SqlUnderTest) -> None:
    here, there = [Process(ledger_store.ground_of(each)) for each in await ledger_store.open_workers(2)]
    assert await there.knows() is None and await there.knows(BOB) is None
    assert there.kept() and there.kept(BOB)
    await here.ground.store.preferences.change(DEMO, ANN, NO_PROMOTION, NOW, "user")
    known = await there.knows(BOB)
    assert known is None and there.kept(BOB) and not there.kept(ANN), "she is dropped, and he is not"
    known = await there.knows()
    assert known is not None and known.said.types["promotion"].enabled is False
    zone = ProfileChange(named=frozenset({"time_zone"}), time_zone="Asia/Tokyo")
    await here.ground.store.profiles.change(DEMO, ANN, zone, NOW)
    known = await there.knows()
    assert known is not None and known.zone.key == "Asia/Tokyo"
    zone = ProfileChange(named=frozenset({"time_zone"}), time_zone="America/Lima")
    await here.ground.store.profiles.change_many(DEMO, [(ANN, zone)], NOW)
    known = await there.knows()
    assert known is not None and known.zone.key == "America/Lima"
    await here.ground.store.preferences.erase(DEMO, ANN, NOW)
    assert await there.knows() is None


async def test_only_an_erasure_that_finds_something_has_everybody_forgotten(ledger_store: SqlUnderTest) -> None:
    here, there = [Process(ledger_store.ground_of(each)) for each in await ledger_store.open_workers(2)]
    store = here.ground.store
    await store.preferences.change(DEMO, ANN, NO_PROMOTION, NOW, "user")
    await store.profiles.put(DEMO, ANN, Profile(time_zone="Asia/Tokyo"), NOW)
    for erase, is_found in (
        (store.preferences.erase, True),
        (store.preferences.erase, False),
        (store.profiles.erase, True),
        (store.profiles.erase, False),
    ):
        await there.knows(BOB)
        assert there.kept(BOB)
        await erase(DEMO, ANN, NOW)
        await there.knows(UserId("cleo"))
        assert there.kept(BOB) is not is_found


async def test_where_a_change_is_gone_before_it_was_read_everybody_is_forgotten(ledger_store: SqlUnderTest) -> None:
    here, there = [Process(ledger_store.ground_of(each)) for each in await ledger_store.open_workers(2)]
    await there.knows()
    await here.ground.store.preferences.change(DEMO, ANN, NO_PROMOTION, NOW, "user")
    await here.ground.store.preferences.change(DEMO, BOB, NO_PROMOTION, NOW, "user")

    def lose(transaction: Transaction, _: Sequence[None]) -> list[None]:
        transaction.connection.execute("DELETE FROM user_change WHERE user_id = ?", (ANN,))
        return [None]

    database = here.ground.store.database
    await database.commits.submit(OperationKind("lose", lose, durable=True), None)
    assert await there.knows() is not None


@shows("S3-72")
async def test_what_is_known_is_kept_for_half_an_hour(ledger_store: SqlUnderTest) -> None:
    (worker,) = await ledger_store.open_workers(1)
    process = Process(ledger_store.ground_of(worker))
    reads = 0
    read = process.ground.store.preferences.of

    async def counted(app: AppId, users: list[UserId]) -> object:
        nonlocal reads
        reads += 1
        return await read(app, users)

    process.ground.store.preferences.of = counted  # type: ignore[method-assign,assignment]  # counts what is read
    for _ in range(3):
        await process.knows()
    assert reads == 1
    ledger_store.clock.advance(KEPT_S * 1_000 - 1)
    await process.knows()
    assert reads == 1
    ledger_store.clock.advance(1)
    await process.knows()
    assert reads == 2


async def test_who_has_missed_more_changes_than_are_listed_forgets_everybody(ledger_store: SqlUnderTest) -> None:
    here, there = [Process(ledger_store.ground_of(each)) for each in await ledger_store.open_workers(2)]
    await there.knows()
    await here.ground.store.preferences.change(DEMO, ANN, NO_PROMOTION, NOW, "user")
    others = [UserId(f"user-{n}") for n in range(KEPT + 1)]
    await asyncio.gather(
        *(here.ground.store.preferences.change(DEMO, user, NO_PROMOTION, NOW, "user") for user in others)
    )
    assert await there.knows() is not None
