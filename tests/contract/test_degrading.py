"""What is over a cap that degrades is in the feed alone: a lane on a real store, with the sender of the feed."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.day import NEWS, Day, day_of
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from tests.unit.runtime.bench import APP
from waypost.config import AppSettings, Config
from waypost.domain.ids import UserId, format_id
from waypost.domain.preferences import Cap, PreferenceChange, PreferenceSettings, TypeSettings
from waypost.domain.quiet_hours import Hours
from waypost.domain.time import HOUR_MS
from waypost.features.preferences.degrading import copy_id, put_into_feed

pytestmark = pytest.mark.asyncio

ANN = UserId("ann")
CONFIG = Config(
    apps={
        APP: AppSettings(
            types={NEWS: TypeSettings(cap=Cap(limit=1, over="degrade"))},
            preferences=PreferenceSettings(quiet_hours=Hours.parse("09:00-10:00")),
        )
    }
)
SENT, SUPPRESSED = "sent", "suppressed"


@pytest_asyncio.fixture
async def day(ledger_store: SqlUnderTest, tmp_path: Path) -> Day:
    """It is 08:00 in UTC; one a day is the cap."""
    return await day_of(ledger_store, tmp_path, CONFIG)


@shows("S3-113")
async def test_what_is_over_the_cap_is_in_the_feed_and_recorded_with_its_copy_there(day: Day) -> None:
    first, second = await day.told(), await day.told()
    assert await day.fate(first) == [("apns", SENT, None)]
    assert await day.fate(second) == [("apns", SUPPRESSED, f"degraded to {format_id(copy_id(second))}")]
    assert await day.fate(copy_id(second)) == [("inapp", SENT, None)]
    copy = (await day.bench.detail(copy_id(second))).record.notification
    assert (copy.content.title, copy.content.type, copy.user_id) == ("Moon", NEWS, ANN)
    assert len(day.bench.apns.sent) == 1


async def test_what_names_the_feed_is_there_itself(day: Day) -> None:
    await day.told()
    second = await day.told("push", "inapp")
    assert sorted(await day.fate(second)) == [("apns", SUPPRESSED, "degraded"), ("inapp", SENT, None)]


async def test_what_waited_for_the_end_of_quiet_hours_is_degraded_then(day: Day) -> None:
    """Its targets are fixed by then, and the feed is none of them."""
    await day.told()
    day.bench.clock.advance(HOUR_MS)
    waiting = await day.told()
    day.bench.clock.advance(HOUR_MS)
    await day.turn()
    assert await day.fate(waiting) == [("apns", SUPPRESSED, f"degraded to {format_id(copy_id(waiting))}")]
    assert await day.fate(copy_id(waiting)) == [("inapp", SENT, None)]


async def test_what_whoever_died_put_into_the_feed_is_not_sent_when_there_is_room(day: Day) -> None:
    day.bench.clock.advance(HOUR_MS)
    waiting = await day.told()
    made = (await day.bench.detail(waiting)).record.notification
    await put_into_feed(day.ground, [made], day.bench.clock.now())
    day.bench.clock.advance(HOUR_MS)
    await day.turn()
    assert await day.fate(waiting) == [("apns", SUPPRESSED, f"degraded to {format_id(copy_id(waiting))}")]
    assert day.bench.apns.sent == []


async def test_who_does_not_want_the_type_in_the_feed_has_nothing_there(day: Day) -> None:
    off = PreferenceChange(channels={"inapp": False})
    await day.ground.store.preferences.change(APP, ANN, off, day.bench.clock.now(), "user")
    await day.told()
    second = await day.told()
    assert await day.fate(copy_id(second)) == [("inapp", SUPPRESSED, "preference")]


async def test_a_copy_that_is_made_again_is_there_once(day: Day) -> None:
    """Whoever dies between the copy and the record leaves the notification to another."""
    await day.told()
    second = await day.told()
    made = (await day.bench.detail(second)).record.notification
    await put_into_feed(day.ground, [made], day.bench.clock.now())
    await day.turn()
    assert await day.fate(copy_id(second)) == [("inapp", SENT, None)]
