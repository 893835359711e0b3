"""The outbox: what becomes leasable is published for others, at least once, and no delivery waits for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scripts.services.redis import Redis
from tests.contract.bench import APP, OTHER_APP, RETRY_MS, Bench, again, notification, sent
from tests.contract.claims import PublishedUnderTest
from tests.journeys.harness import until
from tests.shows import shows
from tests.unit.adapters.noted import Noted
from waypost.domain.amendment import Reschedule, Rescheduled
from waypost.domain.channel import Channel
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Content, Kind
from waypost.domain.errors import Unavailable
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.notification import Lane
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import MINUTE_MS, isoformat, later
from waypost.ports.broker import Entry
from waypost.ports.outbox import EntryState, OutboxQuery
from waypost.stores.sql.outbox import resting
from waypost.stores.sql.outbox.relaying import Relay
from waypost.stores.sql.outbox.topics import LaneTopics
from waypost.telemetry import Event

TOLD = ("target", "retry_count", "due_at")
pytestmark = [pytest.mark.engines, pytest.mark.asyncio]


@pytest_asyncio.fixture
async def stack(emptied_postgres: str, redis_url: str) -> AsyncIterator[PublishedUnderTest]:
    """An empty store that is published."""
    opened = PublishedUnderTest(emptied_postgres, redis_url)
    await opened.open()
    yield opened
    await opened.close()


async def benches(stack: PublishedUnderTest, count: int) -> list[Bench]:
    """Workers of it."""
    return [Bench(stack, worker) for worker in await stack.open_workers(count)]


async def shown(stack: PublishedUnderTest, *states: EntryState) -> list[tuple[NotificationId, int | None]]:
    """What operators see of the outbox."""
    return [(entry.notification_id, entry.n) for entry in await stack.outbox.entries(OutboxQuery(APP, states))]


def published_by(relay: Relay) -> list[Lane]:
    """The lanes that it publishes from now on, one for each time."""
    lanes: list[Lane] = []
    assert isinstance(relay._topics, LaneTopics)
    topic = relay._topics.deliveries
    publish = topic.publish

    async def noted(lane: Lane, entries: Sequence[Entry]) -> None:
        lanes.append(lane)
        await publish(lane, entries)

    setattr(topic, publish.__name__, noted)
    return lanes


@shows("S4-07", "S4-08", "S4-13", "S4-15")
async def test_an_entry_is_written_with_its_notification_and_published(stack: PublishedUnderTest) -> None:
    """Requirements S4-07, S4-08, S4-15: pending, claimed, published; delivery goes on whatever has become of it."""
    (bench,) = await benches(stack, 1)
    made = await bench.accepted()
    assert await shown(stack, EntryState.PENDING) == [(made.id, None)]
    await stack.claim(bench.worker)
    assert await shown(stack, EntryState.CLAIMED) == [(made.id, None)]
    lease, item = await bench.take_one()
    assert await bench.status(made) is NotificationStatus.PROCESSING
    await stack.crash(bench.worker)
    (bench,) = await benches(stack, 1)
    assert await stack.relay_of(bench.worker).relay() == 1
    assert await shown(stack, EntryState.PUBLISHED) == [(made.id, None)]
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now), again(1, bench.now))
    assert await shown(stack, EntryState.PENDING) == [], "by lane nothing is told of what waits"
    bench.clock.advance(MINUTE_MS)
    assert await bench.worker.promote_due(bench.now, 10) == 1
    assert await shown(stack, EntryState.PENDING) == [(made.id, 1)]


@shows("S4-04", "S4-08", "S4-12", "S4-77")
async def test_by_channel_each_has_its_topic_and_entries_are_keyed_by_their_notification(
    stack: PublishedUnderTest,
) -> None:
    """Requirements S4-04, S4-08, S4-12, S4-77: two side by side are two entries; a step that waits has none yet."""
    stack.by_channel({Channel("fcm"): "push", Channel("email"): "email"})
    (bench,) = await benches(stack, 1)
    first = ChannelStep("fcm", until=DeliveryStatus.DELIVERED, for_s=30)
    said = {
        "plain": (),
        "both": (ChannelStep("push"), ChannelStep("email")),
        "mail": (ChannelStep("email"),),
        "fallback": (first, ChannelStep("sms")),
    }
    made = {
        name: replace(notification(bench.now, user=name), content=Content(title=name, channels=steps))
        for name, steps in said.items()
    }
    await bench.accept(*made.values())
    named = {format_id(one.id): name for name, one in made.items()}
    pending = await stack.outbox.entries(OutboxQuery(APP, (EntryState.PENDING,)))
    assert {named[format_id(entry.notification_id)]: entry.topics for entry in pending} == {
        "plain": ("push_notification",),
        "both": ("push_notification", "email_notification"),
        "mail": ("email_notification",),
        "fallback": ("push_notification",),
    }
    assert await stack.relay_of(bench.worker).relay() == len(made)
    found = {channel: await stack.of_channel(channel) for channel in ("push", "email", "sms")}
    assert {channel: [named[key] for key, _ in entries] for channel, entries in found.items()} == {
        "push": ["plain", "both", "fallback"],
        "email": ["both", "mail"],
        "sms": [],
    }
    key, entry = found["email"][1]
    described = {"channel": "email", "app": APP, "kind": "visible", "lane": "normal", "target": None}
    assert entry == {"notification_id": key, **described, "retry_count": 0, "due_at": None}


@shows("S4-23", "S4-24", "S4-71")
async def test_by_channel_a_target_that_is_tried_again_waits_in_sight_and_is_at_its_own(
    stack: PublishedUnderTest,
) -> None:
    """Requirements S4-23, S4-24: told with its time and its number while it waits, and in its channel's topic then."""
    stack.by_channel({Channel(name): "push" for name in ("apns", "fcm", "webpush")})
    (bench,) = await benches(stack, 1)
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now), again(1, bench.now))
    due_at = later(bench.now, RETRY_MS)
    (waits, _) = await stack.outbox.entries(OutboxQuery(APP))
    assert (waits.n, waits.due_at, waits.topics) == (1, due_at, ("delayed_notification",))
    relay = stack.relay_of(bench.worker)
    assert await relay.relay() == 2
    ((key, told),) = await stack.of_channel("delayed")
    assert (key, told["channel"], told["target"], told["retry_count"]) == (format_id(made.id), "push", 1, 1)
    assert told["due_at"] == isoformat(due_at)
    bench.clock.advance(MINUTE_MS)
    assert await bench.worker.promote_due(bench.now, 10) == 1
    assert await relay.relay() == 1
    assert [(key, *map(entry.get, TOLD)) for key, entry in await stack.of_channel("push")] == [
        (format_id(made.id), None, 0, None),
        (format_id(made.id), 1, 1, None),
    ]
    assert len(await stack.of_channel("delayed")) == 1


@shows("S1-52")
async def test_what_kind_it_is_is_said_by_the_task_the_entry_and_the_receipt(stack: PublishedUnderTest) -> None:
    stack.by_channel({})
    (bench,) = await benches(stack, 1)
    quiet = replace(notification(bench.now, lane=Lane.SILENT), kind=Kind.SILENT, content=Content(data={"sync": True}))
    loud = notification(bench.now)
    await bench.accept(quiet, loud)
    await stack.relay_of(bench.worker).relay()
    told = {key: entry["kind"] for key, entry in await stack.of_channel("push")}
    assert told == {format_id(quiet.id): "silent", format_id(loud.id): "visible"}
    for made, lane in ((quiet, Lane.SILENT), (loud, Lane.NORMAL)):
        lease = await bench.lease(lane=lane)
        (item,) = lease.items
        assert item.notification.kind is made.kind
        await bench.settle_first(lease, item, 1, sent(0, bench.now))
        detail = await stack.views.detail(APP, made.id)
        assert detail is not None
        assert (detail.record.notification.kind, len(detail.receipts)) == (made.kind, 1)


@shows("S4-68")
async def test_by_channel_what_is_scheduled_waits_in_sight_with_its_time(stack: PublishedUnderTest) -> None:
    """Requirement S4-68: what lies in the future is told in ``delayed_notification`` first."""
    stack.by_channel({Channel("email"): "email"})
    (bench,) = await benches(stack, 1)
    at = later(bench.now, MINUTE_MS)
    mail = Content(title="Soon", channels=(ChannelStep("email"),))
    made = replace(notification(bench.now, scheduled_at=at), content=mail)
    await bench.accept(made)
    relay = stack.relay_of(bench.worker)
    assert await relay.relay() == 1
    ((key, told),) = await stack.of_channel("delayed")
    assert (key, told["channel"], told["due_at"]) == (format_id(made.id), "email", isoformat(at))
    assert await stack.of_channel("email") == []
    moved = later(at, MINUTE_MS)
    assert await bench.worker.amend([Reschedule(made.app, made.id, moved)], bench.now) == [Rescheduled(moved)]
    assert await relay.relay() == 1
    assert [told["due_at"] for _, told in await stack.of_channel("delayed")] == [isoformat(at), isoformat(moved)]
    bench.clock.advance(2 * MINUTE_MS)
    assert await bench.worker.promote_due(bench.now, 10) == 1
    assert await relay.relay() == 1
    assert [(key, *map(entry.get, TOLD)) for key, entry in await stack.of_channel("email")] == [
        (format_id(made.id), None, 0, None)
    ]


@shows("S4-10", "S4-12")
async def test_several_relays_publish_each_entry_once(stack: PublishedUnderTest) -> None:
    """Requirements S4-10, S4-12: whoever claims an entry publishes it, a lane at once."""
    workers = await benches(stack, 4)
    made = [notification(workers[0].now, lane=lane) for lane in (Lane.NORMAL, Lane.HIGH) for _ in range(30)]
    await workers[0].accept(*made)
    relays = [stack.relay_of(bench.worker) for bench in workers]
    published = [published_by(relay) for relay in relays]
    assert sum(await asyncio.gather(*(relay.relay() for relay in relays))) == len(made)
    for lanes in published:
        assert len(lanes) == len(set(lanes)), "one publish for each lane"
    assert await stack.at_the_broker() == len(made)
    assert len(await shown(stack, EntryState.PUBLISHED)) == 50


@shows("S4-09")
async def test_a_poll_publishes_no_more_than_a_batch(stack: PublishedUnderTest) -> None:
    """Requirement S4-09: 500 at a time unless said otherwise, until nothing waits that is nobody's."""
    (bench,) = await benches(stack, 1)
    await bench.accept(*(notification(bench.now) for _ in range(501)))
    relay = stack.relay_of(bench.worker)
    assert [await relay.relay() for _ in range(3)] == [500, 1, 0]


@shows("S4-09", "S4-11", "S4-16", "S4-72")
async def test_what_a_dead_relay_published_without_marking_it_is_published_again(stack: PublishedUnderTest) -> None:
    """Requirements S4-11, S4-16: at least once from the outbox to its topic."""
    dying, bench = await benches(stack, 2)
    await dying.accepted()
    await stack.claim(dying.worker, publish=True)
    assert await stack.at_the_broker() == 1
    assert await stack.relay_of(bench.worker).relay() == 0, "claimed by somebody who lives"
    await stack.crash(dying.worker)
    assert await stack.relay_of(bench.worker).relay() == 1
    assert await stack.at_the_broker() == 2


@shows("S4-73", "S4-74")
async def test_a_relay_rests_longer_each_time_and_delivery_goes_on(
    emptied_postgres: str, redis_alone: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requirement S4-73: 5, 10, 20, 40, 60 s; meanwhile nothing fails, and what waits is published afterwards."""
    stack = PublishedUnderTest(emptied_postgres, redis_alone.url)
    noted = stack.telemetry = Noted()
    await stack.open()
    (bench,) = await benches(stack, 1)
    relay = stack.relay_of(bench.worker)
    redis_alone.kill()
    made = [await bench.accepted(user=f"u{n}") for n in range(2)]
    for _ in range(6):
        with pytest.raises(Unavailable):
            await relay.relay()
    assert [each["again_in_s"] for each in noted.fields_of(Event.RELAY_RETRY)] == [5, 10, 20, 40, 60, 60]

    async def waiting() -> bool:
        return await shown(stack, EntryState.PENDING) == [(one.id, None) for one in reversed(made)]

    await until(waiting, "the last claims are given up")
    assert await bench.leasable() == [one.id for one in made]

    monkeypatch.setattr(resting, "RESTS_S", (0.01,))
    relay.start()
    relay.wake()

    async def rests() -> bool:
        return len(noted.fields_of(Event.RELAY_RETRY)) >= 7

    await until(rests, "the relay rests")
    redis_alone.start()

    async def published() -> bool:
        with contextlib.suppress(Unavailable):
            return await stack.at_the_broker() == 2
        return False

    await until(published, "what waited is published")
    await relay.stop()
    await stack.close()


async def test_a_relay_outlives_a_fault_of_one_turn(stack: PublishedUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of, and the next turn publishes."""
    noted = stack.telemetry = Noted()
    (bench,) = await benches(stack, 1)
    relay = stack.relay_of(bench.worker)

    async def fails(claimed: object) -> None:
        monkeypatch.undo()
        raise ValueError("of an entry")

    monkeypatch.setattr(relay, "_publish", fails)
    relay.start()
    await bench.accepted()

    async def told() -> bool:
        return noted.fields_of(Event.STAGE_FAILED) == [{"stage": "relay", "error": "ValueError"}]

    async def published() -> bool:
        relay.wake()
        return await stack.at_the_broker() == 1

    await until(told, "the fault is told of")
    await until(published, "the next turn publishes")
    await relay.stop()


async def test_a_relay_that_is_woken_as_it_stops_stops(stack: PublishedUnderTest) -> None:
    """The end of what it waits for swallows no cancellation."""
    (bench,) = await benches(stack, 1)
    relay = stack.relay_of(bench.worker)
    relay.start()
    await asyncio.sleep(0)  # it waits
    await asyncio.sleep(0)
    relay.wake()
    await relay.stop()


@shows("S4-14")
async def test_what_was_published_is_dropped_after_a_while_and_nothing_else(stack: PublishedUnderTest) -> None:
    """Requirement S4-14: after five minutes, unless said otherwise."""
    (bench,) = await benches(stack, 1)
    done = await bench.accepted(user="done")
    relay = stack.relay_of(bench.worker)
    await relay.relay()
    still = await bench.accepted(user="waits")
    assert await relay.tidy() == 0
    assert (done.id, None) in await shown(stack)
    bench.clock.advance(5 * MINUTE_MS - 1)
    assert await relay.tidy() == 0
    bench.clock.advance(2)
    assert await relay.tidy() == 1
    assert await shown(stack) == [(still.id, None)]


async def test_what_is_old_goes_from_a_stream_that_nobody_reads(
    stack: PublishedUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis holds a week, about: whole nodes of a hundred entries."""
    from waypost.stores.redis import broker

    (bench,) = await benches(stack, 1)
    relay = stack.relay_of(bench.worker)
    await bench.accept(*(notification(bench.now, user=f"u{n}") for n in range(250)))
    await relay.relay()
    monkeypatch.setattr(broker, "KEPT_MS", -MINUTE_MS)
    await bench.accept(*(notification(bench.now, user=f"u{n}", app=app) for n, app in enumerate((APP, OTHER_APP))))
    await relay.relay()
    assert await stack.at_the_broker() < 150
