"""A day of one user: a lane on a real store, with a phone, the sender of the feed, and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.contract.sql import SqlUnderTest
from tests.unit.runtime.bench import APP, LaneBench
from waypost.channels.inapp.plugin import PLUGIN
from waypost.channels.inapp.sender import InappSender
from waypost.channels.inapp.settings import CHANNEL as FEED
from waypost.config import Config
from waypost.domain.channel import APNS, Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.domain.rules import with_rules
from waypost.domain.submission import NotificationType
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import RULES, render
from waypost.features.preferences.parts import claims, facts

NEWS = NotificationType("news")


class Day:
    """Ann's phone and feed, from eight in the morning on."""

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


async def day_of(ledger_store: SqlUnderTest, tmp_path: Path, config: Config) -> Day:
    """Begin a day at 08:00 in UTC, under the policy of *config*."""
    (worker,) = await ledger_store.open_workers(1)
    families = {APNS: "push", FEED: str(FEED)}
    ground = replace(ledger_store.ground_of(worker), config=config, families=families, memory={})
    bench = LaneBench(tmp_path / "board")
    store: Any = ground.store  # in the place of the one in memory
    bench.clock, bench.work, bench.devices, bench.views = ledger_store.clock, worker, store.devices, store.views
    bench.ids._clock = ledger_store.clock

    async def read(notifications: Sequence[Notification]) -> list[Mapping[str, object]]:
        return [{"preferences": each} for each in await facts(ground, notifications)]

    feed = InappSender(CredentialId(APP, FEED))
    await feed.start()
    bench.routing_rules, bench.others = with_rules((*PLUGIN.rules, *RULES)), (feed,)
    bench.families, bench.renderers = families, (render,)
    bench.facts, bench.claims = read, partial(claims, ground)
    await bench.register("ann", Channel("apns"))
    return Day(bench, ground)
