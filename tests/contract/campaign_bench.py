"""The words in which the suites of campaigns speak: one worker on a store, and the campaign `spring`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from tests.contract.bench import APP, CALLER, Bench
from tests.contract.bulk_bench import leased, taken, users_of
from waypost.domain.campaign import Campaign, CampaignOrder, CampaignSubmission
from waypost.domain.channel import APNS
from waypost.domain.delivery import FailureClass, Target
from waypost.domain.ids import CallerId, DeviceId, UserId
from waypost.domain.segment import Filter
from waypost.domain.settlement import Change, Dead
from waypost.domain.status import NotificationStatus
from waypost.features.campaigns import ordering
from waypost.features.campaigns.jobs import counts_of, records_of
from waypost.features.campaigns.running import tend
from waypost.features.parts import Ground
from waypost.ports.work import Settled, WorkItem

USERS = [f"u{n:03}" for n in range(60)]


class CampaignBench(Bench):
    """One worker on a store, and the campaign `spring` of an app."""

    ground: Ground
    approval = False

    @property
    def campaigns(self) -> Any:
        """The store's campaigns."""
        return self.ground.store.campaigns

    async def put(self, by: CallerId = CALLER, **fields: Any) -> Campaign:
        """Draft or change it."""
        asked = {"notification": {"title": "Sale"}, "recipients": USERS} | fields
        asked = {name: value for name, value in asked.items() if value is not None}
        submission = msgspec.convert(asked, CampaignSubmission)
        chosen = None if submission.to is None else Filter(topic=submission.to.topic)
        named = submission.notification.template
        wanted = [] if named is None else [(named.name, named.version)]
        version = next(iter((await self.ground.store.templates.chosen(APP, wanted)).values()), None)
        return (await ordering.put(self.ground, APP, "spring", by, submission, (), chosen, version))[0]

    async def hear(self) -> None:
        """Let all users hear the topic `news`."""
        topics = self.ground.store.topics
        await topics.put(APP, "news", "", is_open=False, at=self.now)
        await topics.change(APP, "news", [UserId(user) for user in USERS], [], self.now)

    async def order(self, order: CampaignOrder, by: CallerId = CALLER, at: Any = None) -> Campaign:
        """Order it about."""
        return await ordering.order(self.ground, APP, "spring", by, order, at)

    async def stands(self) -> Campaign:
        """How it stands."""
        return await ordering.found(self.ground, APP, "spring")

    async def counts(self) -> Counter[NotificationStatus]:
        """Its recipients by status."""
        return counts_of(await records_of(self.ground, await self.stands()))

    async def walk(self) -> None:
        """Enqueue whoever may be."""
        for each in await self.bulk.running():
            while (await self.bulk.enqueue(each.app, each.id, 30, 7)).moved:
                pass

    async def send(self, fails: Callable[[str], bool] = lambda _: False, n: int = 1000) -> list[str]:
        """Enqueue and send; who was told."""
        await self.walk()
        lease = await leased(self, n)
        await self.settle(lease, *(_ended(item, self, fails) for item in lease.items))
        await self.bulk.tidy(self.now, 1000)
        return users_of(lease)

    async def rounds(self, count: int, fails: Callable[[str], bool] = lambda _: False) -> list[list[str]]:
        """Let it go on a minute at a time; who was told in each."""
        told = []
        for _ in range(count):
            await tend(self.ground)
            told.append(await self.send(fails))
            await tend(self.ground)
            self.clock.advance(61_000)
        return told


def _ended(item: WorkItem, bench: Bench, fails: Callable[[str], bool]) -> Settled:
    if not fails(item.notification.user_id):
        return taken(item, bench.now)
    dead = Dead("400", "bad", FailureClass.TERMINAL, letter=False)
    return Settled(item.notification, (Change(0, 1, dead, bench.now),), (Target(0, DeviceId("d"), APNS),))
