"""What comes by night is one message in the morning: a lane on a real store, and a clock that the test moves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.amending import withdraw
from tests.contract.sql import SqlUnderTest
from tests.unit.runtime.bench import APP, LaneBench
from waypost.config import AppSettings, Config
from waypost.domain.channel import APNS, Channel
from waypost.domain.content import Content
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, UserId, parse_id
from waypost.domain.notification import Notification
from waypost.domain.preferences import (
    DigestSettings,
    Language,
    PreferenceChange,
    PreferenceSettings,
    TypeChange,
    TypeSettings,
)
from waypost.domain.profile import Profile
from waypost.domain.quiet_hours import Hours
from waypost.domain.rules import with_rules
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.submission import NotificationType
from waypost.domain.time import HOUR_MS, MINUTE_MS
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import RULES, render
from waypost.features.preferences.parts import claims, facts
from waypost.stores.sql.digests import KEPT_MS

pytestmark = pytest.mark.asyncio

ANN = UserId("ann")
NEWS, SALE = NotificationType("news"), NotificationType("sale")
MERGED = TypeSettings(quiet_hours="merge")
DIGEST = DigestSettings(titles={Language("de"): "{count} Neuigkeiten"}, lines=2)
CONFIG = Config(
    apps={
        APP: AppSettings(
            types={NEWS: MERGED, SALE: MERGED},
            preferences=PreferenceSettings(quiet_hours=Hours.parse("22:00-07:00"), digest=DIGEST),
        )
    }
)


class Night:
    """Ann's phone, from 23:00 on."""

    def __init__(self, bench: LaneBench, ground: Ground) -> None:
        self.bench, self.ground = bench, ground

    async def told(self, title: str, kind: str = NEWS) -> NotificationId:
        """Tell ann, and let the lane do what it can."""
        made = await self.bench.accept("ann", content=Content(title=title, body=f"about {title}", type=kind))
        await self.turn()
        return made

    async def turn(self) -> None:
        """Let the lane do what is due."""
        async with self.bench.running() as loop:
            await self.bench.work.promote_due(self.bench.clock.now(), 100, {})
            await self.bench.settled(loop)

    async def digest_of(self, *told: NotificationId) -> NotificationId:
        """The digest that all of these are recorded with."""
        reasons = set()
        for each in told:
            (receipt,) = (await self.bench.detail(each)).receipts
            assert receipt.status is DeliveryStatus.SUPPRESSED
            reasons.add(receipt.reason)
        (reason,) = reasons
        found = re.fullmatch(r"merged into (\S{36})", str(reason))
        assert found is not None, reason
        return parse_id(found[1])

    @property
    def sent(self) -> list[tuple[str | None, str | None]]:
        """The titles and bodies that the phone got."""
        return [(each.message.content.title, each.message.content.body) for each in self.bench.apns.sent]


@pytest_asyncio.fixture
async def night(ledger_store: SqlUnderTest, tmp_path: Path) -> AsyncIterator[Night]:
    """It is 23:00 in UTC, and ann has a phone."""
    (worker,) = await ledger_store.open_workers(1)
    ground = replace(ledger_store.ground_of(worker), config=CONFIG, families={APNS: "push"}, memory={})
    bench = LaneBench(tmp_path / "board")
    ledger_store.clock.advance(15 * HOUR_MS)
    store: Any = ground.store  # in the place of the one in memory
    bench.clock, bench.work, bench.devices, bench.views = ledger_store.clock, worker, store.devices, store.views
    bench.ids._clock = ledger_store.clock

    async def read(notifications: Sequence[Notification]) -> list[Mapping[str, object]]:
        return [{"preferences": each} for each in await facts(ground, notifications)]

    bench.routing_rules, bench.renderers = with_rules(RULES), (render,)
    bench.facts, bench.claims = read, partial(claims, ground)
    await bench.register("ann", Channel("apns"))
    yield Night(bench, ground)


async def test_a_night_is_one_message_in_the_morning_and_each_is_recorded_with_it(night: Night) -> None:
    told = [await night.told("Moon"), await night.told("Mars", SALE), await night.told("Venus")]
    digest = await night.digest_of(*told)
    assert night.sent == []
    assert (await night.bench.detail(digest)).record.status is NotificationStatus.SCHEDULED
    await night.ground.store.profiles.put(APP, ANN, Profile(locale="de-CH"), night.bench.clock.now())
    night.bench.clock.advance(8 * HOUR_MS + MINUTE_MS)
    await night.turn()
    assert night.sent == [("3 Neuigkeiten", "Moon\nMars\n+ 1")]
    assert (await night.bench.detail(digest)).record.status is NotificationStatus.SENT
    await night.told("Sun")
    assert night.sent[1:] == [("Sun", "about Sun")], "it is day"


async def test_one_alone_is_sent_as_it_is_and_what_was_turned_off_since_is_left_out(night: Night) -> None:
    told = [await night.told("Moon"), await night.told("Mars", SALE)]
    digest = await night.digest_of(*told)
    off = PreferenceChange(types={SALE: TypeChange(enabled=False)})
    await night.ground.store.preferences.change(APP, ANN, off, night.bench.clock.now(), "user")
    night.bench.clock.advance(8 * HOUR_MS + MINUTE_MS)
    await night.turn()
    assert night.sent == [("Moon", "about Moon")]
    assert (await night.bench.detail(digest)).record.status is NotificationStatus.SENT


async def test_a_digest_of_which_nothing_is_wanted_any_more_is_not_sent(night: Night) -> None:
    digest = await night.digest_of(await night.told("Moon"))
    await night.ground.store.preferences.change(
        APP, ANN, PreferenceChange(enabled=False), night.bench.clock.now(), "user"
    )
    night.bench.clock.advance(8 * HOUR_MS + MINUTE_MS)
    await night.turn()
    (receipt,) = (await night.bench.detail(digest)).receipts
    assert (night.sent, receipt.status, receipt.reason) == ([], DeliveryStatus.SUPPRESSED, "preference")


async def test_a_digest_says_something_where_preferences_are_no_longer_used(night: Night) -> None:
    await night.digest_of(await night.told("Moon"), await night.told("Mars"))
    night.bench.routing_rules, night.bench.renderers = with_rules(()), ()
    night.bench.facts = night.bench.claims = None
    night.bench.clock.advance(8 * HOUR_MS + MINUTE_MS)
    await night.turn()
    assert night.sent == [("New messages", None)]


async def test_what_was_put_into_a_digest_when_the_store_went_away_is_not_sent_by_day(night: Night) -> None:
    real: Any = night.bench.claims
    merged = asyncio.Event()

    async def interrupted(*asked: Any) -> Any:
        await real(*asked)
        merged.set()
        raise Unavailable("the store went away")

    night.bench.claims = interrupted
    moon = await night.bench.accept("ann", content=Content(title="Moon", body="about Moon", type=NEWS))
    async with night.bench.running():
        await merged.wait()
    night.bench.clock.advance(9 * HOUR_MS)
    night.bench.claims = real
    await night.turn()
    digest = await night.digest_of(moon)
    assert night.sent == [("Moon", "about Moon")]
    assert (await night.bench.detail(digest)).record.status is NotificationStatus.SENT


async def test_a_digest_that_was_cancelled_takes_no_more_in(night: Night) -> None:
    cancelled = await night.digest_of(await night.told("Moon"))
    await withdraw(night.bench.work, APP, [cancelled], "cancelled", night.bench.clock.now())
    later_ones = await night.digest_of(await night.told("Mars"), await night.told("Venus"))
    assert later_ones != cancelled
    night.bench.clock.advance(8 * HOUR_MS + MINUTE_MS)
    await night.turn()
    assert night.sent == [("2 messages", "Mars\nVenus")]
    await night.ground.store.digests.erase(APP, ANN)
    assert await night.ground.store.digests.members([cancelled, later_ones]) == {}


async def test_in_the_last_minute_it_waits_for_the_end(night: Night) -> None:
    """A digest that is read is whole: nobody adds to it any more."""
    night.bench.clock.advance(8 * HOUR_MS - MINUTE_MS)
    made = await night.told("Moon")
    (receipt,) = (await night.bench.detail(made)).receipts
    assert receipt.parked == "rule:quiet_hours"
    night.bench.clock.advance(MINUTE_MS)
    await night.turn()
    assert night.sent == [("Moon", "about Moon")]


async def test_each_night_has_its_own_and_rows_go_when_it_is_over(night: Night) -> None:
    first = await night.digest_of(await night.told("Moon"))
    night.bench.clock.advance(24 * HOUR_MS)
    second = await night.digest_of(await night.told("Mars"))
    assert first != second
    digests = night.ground.store.digests
    assert await digests.drop(night.bench.clock.now(), 100) == 0
    night.bench.clock.advance(KEPT_MS)
    assert await digests.drop(night.bench.clock.now(), 100) == 1
    assert set(await digests.members([first, second])) == {second}
    await digests.erase(APP, ANN)
    assert await digests.members([first, second]) == {}
