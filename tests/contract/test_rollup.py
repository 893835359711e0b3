"""What was sent and what became of it is counted once, by the quarter of an hour in which it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.bench import APP, Bench, new_id, notification, targets, tried
from tests.contract.bulk_bench import created, job, leased, registered, taken, walked
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.address import FEED
from waypost.domain.best_hour import Hours
from waypost.domain.channel import Channel
from waypost.domain.content import Kind
from waypost.domain.delivery import Target
from waypost.domain.device_event import DeviceEvent, EventKind
from waypost.domain.ids import NotificationId, UserId, format_id
from waypost.domain.notification import Notification
from waypost.domain.settlement import Change, Sent
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import DAY_MS, HOUR_MS, Instant, later
from waypost.domain.tracked import TrackedEvent
from waypost.features.analytics.parts import count
from waypost.ports.analytics import CountQuery
from waypost.ports.erasure import Erasure
from waypost.ports.work import Settled
from waypost.stores.sql.analytics_retention import LOOKED_AT
from waypost.stores.sql.store import Store
from waypost.stores.sql.transaction import OperationKind, Transaction

pytestmark = pytest.mark.asyncio

ANN = UserId("ann")
TWO = targets(2)
IN_FEED = (Target(0, FEED, Channel("inapp")),)


class Counting:
    """A worker, and what was counted of what it did."""

    def __init__(self, under_test: SqlUnderTest, bench: Bench) -> None:
        self.bench = bench
        self.ground = under_test.ground_of(bench.worker)
        self.store: Store = self.ground.store
        self._journal = under_test.journal

    async def send(self, made: Notification, to: tuple[Target, ...] = TWO, at: Instant | None = None) -> None:
        """Send a notification to all of its targets."""
        await self.bench.accept(made)
        lease, item = await self.bench.take_one()
        when = at or self.bench.now
        changes = tuple(Change(each.n, 1, Sent("p"), when, tried(when, "taken")) for each in to)
        assert await self.bench.settle(lease, Settled(item.notification, changes, to)) == []

    async def press(self, made: Notification, n: int, action: str) -> None:
        """Press a button on a device."""
        await self.bench.confirm(made, n, DeliveryStatus.OPENED)
        await self.store.device_events.add([DeviceEvent(made.id, n, EventKind.ACTION, self.bench.now, action)])

    async def count(self) -> None:
        """Read the journal on."""
        rows = await self._journal.read(await self.store.journal.position("rollup"), 1_000)
        await self.store.rollup.take(rows)

    async def sums(self, **question: Any) -> dict[str, tuple[int, int]]:
        """Deliveries and notifications by event, of all that was ever sent."""
        query = CountQuery(APP, Instant(0), later(self.bench.now, DAY_MS), **question)
        counts = await self.store.analytics.counts(query)
        named = {(it.label, it.event.value): (it.deliveries, it.notifications) for it in counts}
        return {event if label is None else f"{label} {event}": both for (label, event), both in named.items()}

    async def done(self, user: UserId = ANN) -> dict[str, int]:
        """What a user did, by name."""
        return {each.name: each.count for each in await self.store.user_events.of(APP, user)}


@pytest_asyncio.fixture
async def counting(ledger_store: SqlUnderTest) -> Counting:
    """Counts of an empty store."""
    return Counting(ledger_store, Bench(ledger_store, (await ledger_store.open_workers(1))[0]))


@shows("S3-118")
async def test_a_notification_counts_once_and_so_does_each_of_its_deliveries(counting: Counting) -> None:
    made = notification(counting.bench.now)
    await counting.send(made)
    await counting.count()
    assert await counting.sums() == {"sent": (2, 1)}
    for n in (0, 1):
        await counting.bench.confirm(made, n)
    await counting.bench.confirm(made, 1, DeliveryStatus.OPENED)
    await counting.count()
    for action in ("track", "call"):
        await counting.press(made, 1, action)
        await counting.press(made, 0, action)
    await counting.count()
    expected = {"sent": (2, 1), "delivered": (2, 1), "read": (2, 1), "opened": (2, 1), "action_taken": (2, 1)}
    assert await counting.sums() == expected
    assert await counting.done() == dict.fromkeys(expected, 1)


async def test_what_is_opened_at_once_was_delivered_too(counting: Counting) -> None:
    made = notification(counting.bench.now)
    await counting.send(made, targets(1))
    await counting.press(made, 0, "track")
    await counting.count()
    every = ("sent", "delivered", "read", "opened", "action_taken")
    assert await counting.sums() == dict.fromkeys(every, (1, 1))


async def test_reading_in_the_feed_is_no_tap_and_pressing_a_button_there_is(counting: Counting) -> None:
    made, other = notification(counting.bench.now), notification(counting.bench.now)
    for each in (made, other):
        await counting.send(each, IN_FEED)
        await counting.bench.confirm(each, 0, DeliveryStatus.OPENED)
    await counting.press(other, 0, "track")
    await counting.count()
    assert await counting.sums(by="channel") == {
        "inapp sent": (2, 2),
        "inapp delivered": (2, 2),
        "inapp read": (2, 2),
        "inapp opened": (1, 1),
        "inapp action_taken": (1, 1),
    }


async def test_what_is_silent_is_not_counted(counting: Counting) -> None:
    await counting.send(replace(notification(counting.bench.now), kind=Kind.SILENT))
    await counting.count()
    assert await counting.sums() == {} == await counting.done()


async def test_an_opening_counts_for_the_time_of_sending_and_its_event_for_its_own(counting: Counting) -> None:
    made, morning = notification(counting.bench.now), counting.bench.now
    await counting.send(made, targets(1))
    counting.bench.clock.advance(5 * HOUR_MS)
    await counting.bench.confirm(made, 0, DeliveryStatus.OPENED)
    await counting.count()
    counts = await counting.store.analytics.counts(CountQuery(APP, morning, later(morning, HOUR_MS)))
    assert {each.event.value for each in counts} == {"sent", "delivered", "read", "opened"}
    (opened,) = [each for each in await counting.store.user_events.of(APP, ANN) if each.name == "opened"]
    assert opened.last_at == later(morning, 5 * HOUR_MS)


async def test_counts_are_told_apart_by_type_channel_and_platform(counting: Counting) -> None:
    plain = notification(counting.bench.now)
    promotion = replace(plain, content=replace(plain.content, type="promotion"))
    await counting.send(promotion)
    await counting.send(notification(counting.bench.now), IN_FEED)
    await counting.count()
    assert await counting.sums(by="type") == {"promotion sent": (2, 1), " sent": (1, 1)}
    assert await counting.sums(by="channel") == {"apns sent": (2, 1), "inapp sent": (1, 1)}
    assert await counting.sums(filters={"type": "promotion"}) == {"sent": (2, 1)}
    assert await counting.sums(filters={"type": "promotion", "channel": "inapp"}) == {}


async def test_a_template_is_counted_with_its_version_and_what_nobody_can_read_without_labels(
    counting: Counting,
) -> None:
    said = {"title": "Hello", "type": "promotion", "template": {"name": "welcome", "version": 3}}
    bodies = [msgspec.msgpack.encode(said), b"\xc1"]

    def write(transaction: Transaction, ops: Sequence[None]) -> list[None]:
        rows = transaction.connection.execute("SELECT seq FROM content ORDER BY seq").fetchall()
        for (seq,), body in zip(rows, bodies, strict=True):
            transaction.connection.execute("UPDATE content SET body = ? WHERE seq = ?", (body, seq))
        return [None] * len(ops)

    for _ in bodies:
        await counting.send(notification(counting.bench.now))
    await counting.store.database.commits.submit(OperationKind("write", write, durable=False), None)
    await counting.count()
    assert await counting.sums(by="template") == {"welcome@3 sent": (2, 1), " sent": (2, 1)}


async def test_two_who_read_the_same_rows_count_them_once(counting: Counting) -> None:
    for _ in range(3):
        await counting.send(notification(counting.bench.now))
    rows = await counting._journal.read(0, 1_000)
    await asyncio.gather(*(counting.store.rollup.take(rows) for _ in range(4)))
    await counting.store.rollup.take(rows)
    assert await counting.sums() == {"sent": (6, 3)}
    assert await counting.store.journal.position("rollup") == rows[-1].position


async def test_who_was_erased_before_it_was_counted_is_not_known_again(counting: Counting) -> None:
    made = notification(counting.bench.now)
    await counting.send(made)
    await counting.count()
    await counting.bench.confirm(made, 0, DeliveryStatus.OPENED)
    erasures = counting.store.erasures
    order = await erasures.ask(Erasure(new_id(counting.bench.now), APP, ANN, UserId("erased-0"), counting.bench.now))
    while await erasures.blank(order, 10):
        pass
    await counting.store.rollup.erase(APP, ANN)
    await counting.count()
    assert await counting.done() == {}
    assert await counting.store.analytics.hours(APP, [ANN], Instant(0)) == [Hours()]
    assert (await counting.sums())["opened"] == (1, 1), "the sums stay"


@shows("S3-121")
async def test_a_bulk_job_is_a_campaign_with_a_funnel_of_its_own(counting: Counting) -> None:
    """Six users on two platforms; four got it, two tapped it, one pressed a button."""
    bench = counting.bench
    users = [f"user-{n}" for n in range(6)]
    await registered(bench, *users[:4], platform="ios")
    await registered(bench, *users[4:], platform="macos")
    made = await created(bench, job())
    assert await walked(bench, made) == 6
    lease = await leased(bench)
    await bench.settle(lease, *(taken(item, bench.now) for item in lease.items))
    by_user = {item.notification.user_id: item.notification for item in lease.items}
    for n, status in enumerate([DeliveryStatus.OPENED] * 2 + [DeliveryStatus.DELIVERED] * 2):
        await bench.confirm(by_user[UserId(users[n])], 0, status)
    await counting.press(by_user[UserId("user-0")], 0, "buy")
    await counting.send(notification(bench.now))
    await counting.count()
    campaign = format_id(NotificationId(made.id))
    assert await counting.sums(filters={"campaign": campaign}) == {
        "sent": (6, 6),
        "delivered": (4, 4),
        "read": (2, 2),
        "opened": (2, 2),
        "action_taken": (1, 1),
    }
    by_platform = await counting.sums(filters={"campaign": campaign}, by="platform")
    assert (by_platform["ios sent"], by_platform["macos sent"]) == ((4, 4), (2, 2))


async def test_old_counts_go_by_pages_and_new_ones_stay(counting: Counting) -> None:
    """Habits and ids go before the rest, whose days are a setting."""
    made, retention = notification(counting.bench.now), counting.store.analytics_retention
    await counting.send(made)
    await counting.count()
    (own,) = await counting.store.user_events.of(APP, ANN)
    paid = TrackedEvent(APP, ANN, "order_paid", counting.bench.now, key=b"1" * 16)
    assert await counting.store.user_events.track([paid]) == 1
    assert await retention.drop(counting.bench.now, 400, 100) == 0
    counting.bench.clock.advance(200 * DAY_MS)
    assert await retention.drop(counting.bench.now, 400, 2) == 2
    assert await retention.drop(counting.bench.now, 400, 2) == 1
    assert await retention.drop(counting.bench.now, 400, 2) == 0
    assert own in await counting.store.user_events.of(APP, ANN)
    assert await retention.drop(counting.bench.now, 100, 100) == 5
    assert await counting.sums() == {} == await counting.done()


async def test_of_many_events_the_writer_is_asked_for_those_alone_that_have_old_counts(counting: Counting) -> None:
    """Who looks for them is a reader: nobody who writes waits for that."""
    retention, bench = counting.store.analytics_retention, counting.bench
    await counting.store.user_events.track([TrackedEvent(APP, ANN, "long_ago", bench.now)])
    bench.clock.advance(300 * DAY_MS)
    many = [TrackedEvent(APP, ANN, f"event_{n}", bench.now) for n in range(LOOKED_AT + 10)]
    await counting.store.user_events.track(many)
    written: list[str] = []
    assert isinstance(bench.store, SqlUnderTest)
    bench.store.watch_writer(bench.worker, written.append, lambda: None)
    assert await retention.drop(bench.now, 100, 100) == 2
    assert len([each for each in written if each.lstrip().startswith("DELETE")]) == 2
    assert set(await counting.done()) == {each.name for each in many}


async def test_who_hears_of_events_hears_what_became_of_notifications_once(counting: Counting) -> None:
    heard: list[tuple[str, UserId]] = []

    def hears(transaction: Transaction, events: Sequence[TrackedEvent]) -> None:
        heard.extend((each.name, each.user_id) for each in events if each.notification_id == made.id)

    made = notification(counting.bench.now)
    await counting.send(made)
    await counting.bench.confirm(made, 0, DeliveryStatus.OPENED)
    rows = await counting._journal.read(0, 1_000)
    for _ in range(2):
        await counting.store.rollup.take(rows, [hears])
    assert heard == [("sent", ANN), ("delivered", ANN), ("read", ANN), ("opened", ANN)]


async def test_platforms_of_a_registry_elsewhere_are_asked_for(counting: Counting) -> None:
    """As where devices are in Cassandra: the store has no row of them."""
    bench = counting.bench
    await registered(bench, ANN, device="d0", platform="macos")
    await counting.send(notification(bench.now), targets(1))
    counting.store.rollup.with_devices = False
    await count(counting.ground, await counting._journal.read(0, 1_000))
    assert await counting.sums(by="platform") == {"macos sent": (1, 1)}
