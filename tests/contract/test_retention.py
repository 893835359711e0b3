"""The contract of Retention, and of Dedup's end of windows, on every engine."""

from __future__ import annotations

import os

import msgspec
import pytest

from tests.contract.bench import APP, Bench, by_content, marking, notification, sent
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import DeviceId, UserId, next_ids, token_hash
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Sent
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, later
from waypost.ports.devices import Eviction
from waypost.ports.feed import Mark, NewEntry
from waypost.ports.views import Marked
from waypost.ports.work import Accepted, Duplicate, NewNotification
from waypost.stores.sql.webhook_queue import WebhookEnded, WebhookEvent

pytestmark = pytest.mark.asyncio


def made_now(bench: Bench, user: str) -> Notification:
    """A notification whose id says the store's time (ids of the other tests never go back, whatever their clocks)."""
    made = notification(bench.now, user=user)
    return msgspec.structs.replace(made, id=next_ids(bench.now, 1, os.urandom(10), 0)[0][0])


@shows("S1-18")
async def test_what_finished_before_the_day_goes_and_the_rest_stays(bench: Bench) -> None:
    """Old and final: gone with its receipts; old and open, or young: kept."""
    old, still_open = made_now(bench, "ann"), made_now(bench, "bob")
    await bench.accept(old, still_open)
    lease = await bench.take()
    done = next(item for item in lease.items if item.notification.id == old.id)
    await bench.settle_first(lease, done, 1, sent(0, bench.now))
    bench.clock.advance(DAY_MS // 2)
    young = made_now(bench, "cyd")
    await bench.accept(young)
    keep_after = later(bench.now, -HOUR_MS)
    assert await bench.store.retention.drop_before(keep_after, 10) == 1
    assert await bench.store.retention.drop_before(keep_after, 10) == 0
    assert await bench.store.views.detail(old.app, old.id) is None
    kept = await bench.store.views.statuses(old.app, [old.id, still_open.id, young.id])
    assert set(kept) == {still_open.id, young.id}
    assert (await bench.store.views.balance())[NotificationStatus.PENDING] == 2


@shows("S1-19")
async def test_no_device_goes_by_its_age(bench: Bench) -> None:
    """Requirements S1-19: ten years unused, it leaves the registry by eviction alone."""
    said = Registration(APP, UserId("ann"), DeviceId("d"), Platform("ios"), "token")
    kept = (await bench.store.devices.upsert(said, bench.now, cap=0)).device
    bench.clock.advance(3_650 * DAY_MS)
    await bench.store.retention.drop_whole(bench.now)
    assert await bench.store.retention.drop_before(bench.now, 10) == 0
    assert await bench.store.devices.for_users([(APP, UserId("ann"))]) == [[kept]]
    await bench.store.devices.evict([Eviction(APP, token_hash("token"), bench.now)])
    assert await bench.store.devices.for_users([(APP, UserId("ann"))]) == [[]]


async def test_what_was_made_long_ago_and_finished_lately_stays(bench: Bench) -> None:
    """A schedule far ahead and a replayed dead letter can be asked for as long as anything else."""
    made = made_now(bench, "ann")
    await bench.accept(made)
    bench.clock.advance(40 * DAY_MS)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert await bench.store.retention.drop_before(later(bench.now, -30 * DAY_MS), 10) == 0
    assert await bench.status(made) is NotificationStatus.SENT
    bench.clock.advance(30 * DAY_MS + 1)
    assert await bench.store.retention.drop_before(later(bench.now, -30 * DAY_MS), 10) == 1


async def test_a_page_is_no_larger_than_asked(bench: Bench) -> None:
    """Three old ones leave in three steps of one."""
    for n in range(3):
        await bench.routed(made_now(bench, f"user-{n}"), Sent("id"))
    steps = 0
    while dropped := await bench.store.retention.drop_before(later(bench.now, HOUR_MS), 1):
        assert dropped == 1
        steps += 1
    assert steps == 3


async def test_windows_that_are_over_are_cleared_and_open_ones_hold(bench: Bench) -> None:
    """What is cleared was over anyway; a key whose window is open still finds its first."""
    first = notification(bench.now, body="same")
    assert await bench.accept(NewNotification(first, (by_content(first, HOUR_MS),))) == [Accepted(first.id)]
    await bench.store.dedup.drop_over()
    second = notification(bench.now, body="same")
    assert await bench.accept(NewNotification(second, (by_content(second, HOUR_MS),))) == [
        Duplicate(first.id, second.id)
    ]
    bench.clock.advance(2 * DAY_MS)
    assert await bench.store.dedup.drop_over() >= 1
    third = notification(bench.now, body="same")
    assert await bench.accept(NewNotification(third, (by_content(third, HOUR_MS),))) == [Accepted(third.id)]


async def test_marks_leave_after_their_notification(bench: Bench) -> None:
    gone, kept = made_now(bench, "ann"), made_now(bench, "ann")
    await bench.routed(gone, Sent("p"))
    await bench.accept(kept)
    for one in (gone, kept):
        await bench.store.feed.mark(marking(one, Mark.READ, bench.now))
    bench.clock.advance(DAY_MS)
    assert await bench.store.retention.drop_before(later(bench.now, -HOUR_MS), 10) == 1
    assert await bench.store.views.detail(APP, gone.id) is None
    assert (await bench.detail(kept)).marked.read_at is not None
    await bench.accept(gone)
    assert (await bench.detail(gone)).marked == Marked()


async def test_what_has_left_is_not_counted_as_unread(bench: Bench) -> None:
    """From the moment that it is not listed any more."""
    gone, kept = made_now(bench, "ann"), made_now(bench, "ann")
    await bench.routed(gone, Sent("p"))
    await bench.accept(kept)
    await bench.store.feed.add(
        [NewEntry(APP, gone.user_id, each.id, 0, n, bench.now) for n, each in enumerate((gone, kept), 1)]
    )
    bench.clock.advance(DAY_MS)
    assert await bench.store.retention.drop_before(later(bench.now, -HOUR_MS), 10) == 1
    (counts,) = await bench.store.feed.counts([(APP, gone.user_id)])
    assert counts.unread == 1


@shows("S3-42")
async def test_what_its_reader_hid_is_deleted_once_it_is_final_and_nothing_else(bench: Bench) -> None:
    """Where ``retention.hidden`` is ``delete`` (requirement S3-42)."""
    hidden, still_open, read, untouched = (made_now(bench, "ann") for _ in range(4))
    for made in (hidden, read, untouched):
        await bench.routed(made, Sent("p"))
    await bench.accept(still_open)
    for made in (hidden, still_open):
        await bench.store.feed.mark(marking(made, Mark.DELETED, bench.now))
    await bench.store.feed.mark(marking(read, Mark.READ, bench.now))
    retention = bench.store.retention
    bench.clock.advance(10 * MINUTE_MS - 1)
    assert await retention.drop_hidden(10) == 0, "its reader may restore it"
    bench.clock.advance(1)
    assert [await retention.drop_hidden(10) for _ in range(2)] == [1, 0]
    assert await bench.store.views.detail(APP, hidden.id) is None
    assert set(await bench.store.views.statuses(APP, [still_open.id, read.id, untouched.id])) == {
        still_open.id,
        read.id,
        untouched.id,
    }
    assert (await bench.store.views.balance())[NotificationStatus.SENT] == 2
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert [await retention.drop_hidden(10) for _ in range(2)] == [1, 0]
    if isinstance(bench.store, SqlUnderTest):
        marks = {hidden.id, still_open.id}
        assert [name for name, value in await bench.store.cells() if value in marks and name != "journal"] == []


async def test_what_is_still_to_be_told_is_not_deleted_as_hidden(ledger_store: SqlUnderTest) -> None:
    """An event for a webhook that is away, a read for a user's other devices: they go with the notification."""
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    store, retention = ledger_store._opened, ledger_store._opened.retention
    event_of, read_of = made_now(bench, "ann"), made_now(bench, "ann")
    for made, is_told in ((event_of, False), (read_of, True)):
        await bench.routed(made, Sent("p"))
        deleted = marking(made, Mark.DELETED, bench.now)
        await store.feed.mark(msgspec.structs.replace(deleted, is_told=is_told))
    event = WebhookEvent(notification(bench.now).id, event_of.id, 1, APP, "https://example.com/", bench.now, b"{}")
    await store.webhook_queue.take([event])
    bench.clock.advance(HOUR_MS)
    assert await retention.drop_hidden(10) == 0
    assert await store.webhook_queue.take([WebhookEnded(event.id)]) == []
    await store.webhook_queue.drop([WebhookEnded(event.id)])
    assert [await retention.drop_hidden(10) for _ in range(2)] == [1, 0]
    (of_ann,) = await store.notification_reads.pending(10)
    assert [each.notification_id for each in of_ann.reads] == [read_of.id]
    await store.notification_reads.told(of_ann.reads)
    assert [await retention.drop_hidden(10) for _ in range(2)] == [1, 0]


async def test_what_is_open_for_days_is_counted_although_hours_long_past_become_one(bench: Bench) -> None:
    """Three days, each with its own counters; what was open before ends after."""
    for _ in range(3):
        await bench.accept(made_now(bench, "ann"))
        bench.clock.advance(DAY_MS)
    for day in range(2):
        await bench.store.retention.drop_whole(later(bench.now, day * DAY_MS - 30 * DAY_MS))
        assert await bench.worker.backlog(bench.now, 1) == {(Lane.NORMAL, APP): 3}
    lease = await bench.take()
    await bench.settle_first(lease, lease.items[0], 1, sent(0, bench.now))
    assert await bench.worker.backlog(bench.now, 1) == {(Lane.NORMAL, APP): 2}
    assert (await bench.store.views.balance())[NotificationStatus.PENDING] == 2
