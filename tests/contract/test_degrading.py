"""What is over a cap that degrades is in the feed alone: a lane on a real store, with the sender of the feed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from tests.unit.runtime.bench import APP, LaneBench
from waypost.channels.inapp.plugin import PLUGIN
from waypost.channels.inapp.sender import InappSender
from waypost.channels.inapp.settings import CHANNEL as FEED
from waypost.config import AppSettings, Config
from waypost.domain.channel import APNS, Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.ids import NotificationId, UserId, format_id
from waypost.domain.notification import Notification
from waypost.domain.preferences import Cap, PreferenceChange, PreferenceSettings, TypeSettings
from waypost.domain.quiet_hours import Hours
from waypost.domain.rules import with_rules
from waypost.domain.submission import NotificationType
from waypost.domain.time import HOUR_MS
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import RULES
from waypost.features.preferences.degrading import copy_id, put_into_feed
from waypost.features.preferences.parts import claims, facts

pytestmark = pytest.mark.asyncio

ANN, NEWS = UserId("ann"), NotificationType("news")
CONFIG = Config(
    apps={
        APP: AppSettings(
            types={NEWS: TypeSettings(cap=Cap(limit=1, over="degrade"))},
            preferences=PreferenceSettings(quiet_hours=Hours.parse("09:00-10:00")),
        )
    }
)
SENT, SUPPRESSED = "sent", "suppressed"


class Day:
    """Ann's phone and feed, from eight in the morning on, and a cap of one a day."""

    def __init__(self, bench: LaneBench, ground: Ground) -> None:
        self.bench, self.ground = bench, ground

    async def told(self, *channels: str) -> NotificationId:
        """Tell ann, and let the lane do what it can."""
        steps = tuple(ChannelStep(each) for each in channels)
        made = await self.bench.accept("ann", content=Content(title="Moon", type=NEWS, channels=steps))
        await self.turn()
        return made

    async def turn(self) -> None:
        """Let the lane do what is due."""
        async with self.bench.running() as loop:
            await self.bench.work.promote_due(self.bench.clock.now(), 100, {})
            await self.bench.settled(loop)

    async def fate(self, of: NotificationId) -> list[tuple[str, str, str | None]]:
        """The channel, status and reason of each target."""
        detail = await self.bench.detail(of)
        return [(str(each.channel), str(each.status), each.reason) for each in detail.receipts]


@pytest_asyncio.fixture
async def day(ledger_store: SqlUnderTest, tmp_path: Path) -> AsyncIterator[Day]:
    """It is 08:00 in UTC."""
    (worker,) = await ledger_store.open_workers(1)
    families = {APNS: "push", FEED: str(FEED)}
    ground = replace(ledger_store.ground_of(worker), config=CONFIG, families=families, memory={})
    bench = LaneBench(tmp_path / "board")
    store: Any = ground.store  # in the place of the one in memory
    bench.clock, bench.work, bench.devices, bench.views = ledger_store.clock, worker, store.devices, store.views
    bench.ids._clock = ledger_store.clock

    async def read(notifications: Sequence[Notification]) -> list[Mapping[str, object]]:
        return [{"preferences": each} for each in await facts(ground, notifications)]

    feed = InappSender(CredentialId(APP, FEED))
    await feed.start()
    bench.routing_rules, bench.others = with_rules((*PLUGIN.rules, *RULES)), (feed,)
    bench.families = families
    bench.facts, bench.claims = read, partial(claims, ground)
    await bench.register("ann", Channel("apns"))
    yield Day(bench, ground)


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
