"""Badges as they are counted, on every engine."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.contract.bench import APP, Bench, marking, notification
from tests.contract.sql import SqlUnderTest
from waypost.bootstrap.features import FEATURES, facts_reader
from waypost.channels.inapp.settings import CHANNEL, InappSettings
from waypost.config import AppSettings, Config
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Kind
from waypost.domain.ids import AppId, UserId
from waypost.domain.notification import Notification
from waypost.domain.status import DeliveryStatus
from waypost.features.feed.badges import ON_THE_WAY_S, USERS_LIMIT, OnTheWay, count, is_used, wants_badge
from waypost.ports.feed import Mark, NewEntry

pytestmark = pytest.mark.asyncio
INAPP, PUSH = ChannelStep("inapp"), ChannelStep("push")


def sent_to(bench: Bench, *channels: ChannelStep, user: str = "ann") -> Notification:
    made = notification(bench.now, user=user)
    return replace(made, content=replace(made.content, channels=channels))


async def bring(bench: Bench, *made: Notification) -> None:
    await bench.accept(*made)
    entries = [NewEntry(each.app, each.user_id, each.id, 0, n, bench.now) for n, each in enumerate(made, 1)]
    await bench.store.feed.add(entries)


async def counted(bench: Bench, on_the_way: OnTheWay, *made: Notification, now_s: float = 0.0) -> list[int]:
    badges = await count(bench.store.feed, made, on_the_way, now_s)
    return [badges[each.id] for each in made]


async def test_each_of_a_batch_counts_what_is_unread_what_is_before_it_and_itself(bench: Bench) -> None:
    read, unread = sent_to(bench, PUSH, INAPP), sent_to(bench, PUSH, INAPP)
    await bring(bench, read, unread)
    await bench.store.feed.mark(marking(read, Mark.READ, bench.now))
    batch = [sent_to(bench, PUSH, INAPP), sent_to(bench, PUSH, INAPP, user="bob"), sent_to(bench, INAPP, PUSH)]
    assert await counted(bench, OnTheWay(), *batch) == [2, 1, 3]


async def test_what_is_sent_before_the_last_came_into_the_feed_counts_it_once(bench: Bench) -> None:
    """Also once it has come, and where it is sent again then."""
    on_the_way = OnTheWay()
    first, second, third = (sent_to(bench, PUSH, INAPP) for _ in range(3))
    assert await counted(bench, on_the_way, first) == [1]
    assert await counted(bench, on_the_way, second) == [2]
    assert await counted(bench, on_the_way, first) == [2], "again, before it came"
    await bring(bench, first, second)
    assert await counted(bench, on_the_way, third) == [3]
    assert await counted(bench, on_the_way, first) == [3], "again"
    await bench.store.feed.mark(marking(first, Mark.READ, bench.now))
    assert await counted(bench, on_the_way, second) == [2]


async def test_what_never_came_is_not_counted_for_ever(bench: Bench) -> None:
    on_the_way = OnTheWay()
    assert await counted(bench, on_the_way, sent_to(bench, INAPP, PUSH)) == [1]
    assert await counted(bench, on_the_way, sent_to(bench, PUSH), now_s=ON_THE_WAY_S) == [0]


async def test_what_comes_into_the_feed_only_where_the_push_fails_is_not_counted_yet(bench: Bench) -> None:
    waits = ChannelStep("push", DeliveryStatus.DELIVERED, 30)
    assert await counted(bench, OnTheWay(), sent_to(bench, waits, INAPP), sent_to(bench, PUSH)) == [0, 0]


async def test_no_more_users_are_remembered_than_there_is_room_for(bench: Bench) -> None:
    on_the_way, one = OnTheWay(), notification(bench.now).id
    for n in range(USERS_LIMIT + 1):
        on_the_way.note((AppId("demo"), UserId(str(n))), [one], 0.0)
    assert [on_the_way.of((AppId("demo"), UserId(str(n))), 0.0) for n in (0, 1)] == [frozenset(), frozenset({one})]


async def test_only_what_is_shown_on_devices_of_apps_that_want_it_is_counted(bench: Bench) -> None:
    """Nothing is read for anything else."""
    off = Config(apps={AppId("demo"): AppSettings(senders={CHANNEL: InappSettings()})})
    on = Config(apps={AppId("demo"): AppSettings(senders={CHANNEL: InappSettings(badge=True)})})
    made = sent_to(bench, PUSH, INAPP)
    assert (is_used(off), is_used(on)) == (False, True)
    assert (wants_badge(off, made), wants_badge(on, made), wants_badge(on, sent_to(bench))) == (False, True, True)
    assert not wants_badge(on, sent_to(bench, INAPP))
    assert not wants_badge(on, replace(made, kind=Kind.SILENT))
    assert not wants_badge(on, replace(made, content=replace(made.content, badge=7)))


async def test_of_an_app_that_left_the_configuration_nothing_is_asked(ledger_store: SqlUnderTest) -> None:
    """What of it is still open is routed, and ends no worker."""
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    config = Config(apps={APP: AppSettings(senders={CHANNEL: InappSettings(badge=True)})})
    ground = replace(ledger_store.ground_of(bench.worker), config=config)
    read = facts_reader({feature.name: ground for feature in FEATURES})
    assert read is not None
    known = sent_to(bench, PUSH, INAPP)
    gone, here = await read([replace(known, app=AppId("gone")), known])
    assert (gone["feed"], here["feed"].unread) == (None, 1)
