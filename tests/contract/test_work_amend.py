"""Work.amend: confirmations, supersessions, and targets that wait for a time or for a sibling."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.contract.bench import (
    OTHER_APP,
    Bench,
    again,
    new_id,
    notification,
    sent,
    targets,
    tried,
)
from tests.contract.bulk_bench import created, job, leased, record, registered, walked
from tests.contract.promised import promise
from tests.contract.stores import StoreUnderTest
from tests.contract.wait_scenarios import FALLBACK, WAIT_MS
from tests.shows import shows
from waypost.domain.amendment import Collapse, Confirm, Confirmed, NotConfirmed, NotOpen, Supersede, TooLate, Withdrawn
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.delivery import FailureClass, Target
from waypost.domain.ids import DeviceId, format_id
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.notification import Lane, Notification
from waypost.domain.settlement import Change, Dead
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, SECOND_MS, later
from waypost.domain.waits import CONFIRMED_ELSEWHERE, WaitsUntil
from waypost.ports.promises import Promise
from waypost.ports.work import Lease, Settled, WorkItem

pytestmark = pytest.mark.asyncio

D, N = DeliveryStatus, NotificationStatus


async def with_fallback(bench: Bench, *changes: Change) -> Notification:
    """A notification whose second target waits for its first, after the first settle."""
    made = await bench.accepted()
    lease, item = await bench.take_one()
    settled = Settled(item.notification, changes or (sent(0, bench.now),), FALLBACK)
    assert await bench.settle(lease, settled) == []
    await bench.receipts(made)  # of a log's, what waits is leased once it is recorded
    return made


async def stands(bench: Bench, made: Notification) -> list[DeliveryStatus]:
    """How its targets stand."""
    return [receipt.status for receipt in await bench.receipts(made)]


# Upwards only, also after the end, and harmless otherwise.


@promise(Promise.CONFIRMS)
async def test_a_confirmation_moves_receipt_status_journal_and_counters_together(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now), sent(1, bench.now))
    finished_at = (await bench.detail(made)).record.finished_at
    rows = len(await bench.store.journal.read(0, 1_000))
    bench.clock.advance(SECOND_MS)
    assert await bench.confirm(made, 0) == Confirmed(D.DELIVERED)
    assert await stands(bench, made) == [D.DELIVERED, D.SENT]
    record = (await bench.detail(made)).record
    assert (record.status, record.finished_at) == (N.DELIVERED, finished_at)
    (row,) = (await bench.store.journal.read(0, 1_000))[rows:]
    delivery, whole = row.moves
    assert isinstance(delivery, DeliveryMoved) and isinstance(whole, NotificationMoved)
    assert (delivery.before, delivery.after, delivery.at) == (D.SENT, D.DELIVERED, bench.now)
    assert (whole.before, whole.after) == (N.SENT, N.DELIVERED)
    assert {status: n for status, n in (await bench.store.views.balance()).items() if n} == {N.DELIVERED: 1}


@promise(Promise.CONFIRMS)
async def test_what_is_late_repeated_or_foreign_changes_nothing(bench: Bench) -> None:
    made = await bench.accepted()
    assert await bench.confirm(made, 0) == NotConfirmed(None)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now))
    assert await bench.confirm(made, 1) == NotConfirmed(D.PENDING)
    await bench.settle_rest(lease, item, sent(1, bench.now))
    assert await bench.confirm(made, 0, D.OPENED) == Confirmed(D.OPENED)
    moves = await bench.moves()
    assert await bench.confirm(made, 0, D.OPENED) == NotConfirmed(D.OPENED)
    assert await bench.confirm(made, 0, D.DELIVERED) == NotConfirmed(D.OPENED)
    assert await bench.confirm(made, 7) == NotConfirmed(None)
    foreign = Confirm(OTHER_APP, made.id, 0, D.OPENED, bench.now)
    unknown = Confirm(made.app, new_id(bench.now), 0, D.OPENED, bench.now)
    assert await bench.worker.amend([foreign, unknown], bench.now) == [NotConfirmed(None)] * 2
    assert await bench.moves() == moves


@promise(Promise.CONFIRMS)
async def test_several_of_one_call_are_answered_in_order(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now), sent(1, bench.now))
    said = [(0, D.DELIVERED), (1, D.DELIVERED), (0, D.OPENED), (0, D.DELIVERED)]
    orders = [Confirm(made.app, made.id, n, status, bench.now) for n, status in said]
    assert await bench.worker.amend(orders, bench.now) == [
        Confirmed(D.DELIVERED), Confirmed(D.DELIVERED), Confirmed(D.OPENED), NotConfirmed(D.OPENED),
    ]  # fmt: skip
    assert await stands(bench, made) == [D.OPENED, D.DELIVERED]


@promise(Promise.CONFIRMS)
async def test_what_is_confirmed_while_it_is_ready_fresh_is_still_leased(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle(lease, Settled(item.notification, given_back=True))
    assert await bench.confirm(made, 0) == NotConfirmed(None)
    assert await bench.leasable() == [made.id]


# What waits is nobody's before its time, on any worker, and comes exactly once.


@promise(Promise.WAITS)
async def test_a_target_waits_until_its_time(bench: Bench) -> None:
    made = await bench.accepted()
    lease, _ = await bench.take_one()
    waits = Target(1, DeviceId("d1"), Channel("apns"), waits=WaitsUntil(later(bench.now, HOUR_MS)))
    await bench.settle(lease, Settled(made, (sent(0, bench.now),), (*targets(1), waits)))
    assert await bench.leasable() == []
    assert await bench.status(made) is N.PROCESSING
    bench.clock.advance(HOUR_MS)
    await _sends_fallback(bench, made)


@shows("S2-29")
@promise(Promise.WAITS)
async def test_a_target_is_sent_when_its_sibling_was_not_confirmed_in_time(bench: Bench) -> None:
    made = await with_fallback(bench)
    bench.clock.advance(WAIT_MS - 1)
    assert await bench.leasable() == []
    bench.clock.advance(1)
    lease, item = await _fallback_leased(bench)
    assert [(each.n, each.status) for each in item.siblings] == [(0, D.SENT)]
    assert await bench.settle_rest(lease, item, sent(1, bench.now)) == []
    assert (await stands(bench, made), await bench.status(made)) == ([D.SENT, D.SENT], N.SENT)


@promise(Promise.WAITS)
async def test_a_confirmed_sibling_ends_the_wait(bench: Bench) -> None:
    made = await with_fallback(bench)
    assert await bench.confirm(made, 0) == Confirmed(D.DELIVERED)
    detail = await bench.detail(made)
    assert [receipt.status for receipt in detail.receipts] == [D.DELIVERED, D.CANCELLED]
    assert (detail.record.status, detail.receipts[1].reason) == (N.DELIVERED, CONFIRMED_ELSEWHERE)
    bench.clock.advance(WAIT_MS)
    assert await bench.leasable() == []


@promise(Promise.WAITS)
async def test_the_wait_begins_with_the_first_attempt_and_outlives_the_worker(bench: Bench) -> None:
    """A provider that is away makes no fallback late."""
    made = await with_fallback(bench, again(0, bench.now, wait_ms=HOUR_MS))
    due_at = later(bench.now, WAIT_MS)
    second = await bench.crash()
    assert (await second.receipts(made))[1].due_at == due_at
    second.clock.advance(max(0, due_at - second.now))
    lease, item = await _fallback_leased(second)
    assert await second.settle_rest(lease, item, sent(1, second.now)) == []
    assert await stands(second, made) == [D.PENDING, D.SENT]


@promise(Promise.WAITS)
async def test_a_sibling_that_fails_when_it_is_tried_again_ends_the_wait(bench: Bench) -> None:
    made = await with_fallback(bench, again(0, bench.now, wait_ms=SECOND_MS))
    bench.clock.advance(SECOND_MS)
    lease, item = await bench.take_one()
    assert [target.n for target in item.open_targets or ()] == [0]
    dead = Dead("400", "bad", FailureClass.TERMINAL, letter=False)
    assert await bench.settle_rest(lease, item, Change(0, 2, dead, bench.now, tried(bench.now, "refused"))) == []
    await bench.receipts(made)  # of a log's, what waits is leased once it is recorded
    lease, item = await _fallback_leased(bench)
    assert await bench.settle_rest(lease, item, sent(1, bench.now)) == []
    assert await stands(bench, made) == [D.FAILED, D.SENT]


@promise(Promise.WAITS)
async def test_what_was_taken_and_came_back_is_not_waited_for(bench: Bench) -> None:
    made = await with_fallback(bench)
    order = Confirm(made.app, made.id, 0, D.FAILED, bench.now, "30005", "unknown handset", is_dead=True)
    assert await bench.worker.amend([order], bench.now) == [Confirmed(D.FAILED)]
    (came_back,) = [each for each in await bench.moves() if isinstance(each, DeliveryMoved) and each.gone_since]
    assert (came_back.after, came_back.code, came_back.token_hash) == (
        D.FAILED,
        "30005",
        tried(bench.now, "taken").token_hash,
    )
    lease, item = await _fallback_leased(bench)
    assert await bench.settle_rest(lease, item, sent(1, bench.now)) == []
    assert (await stands(bench, made), await bench.status(made)) == ([D.FAILED, D.SENT], N.PARTIAL)
    assert (await bench.receipts(made))[0].code == "30005"


@promise(Promise.CONFIRMS)
async def test_what_came_back_after_the_end_makes_the_notification_failed(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert await bench.status(made) is N.SENT
    assert await bench.confirm(made, 0, D.FAILED) == Confirmed(D.FAILED)
    assert (await stands(bench, made), await bench.status(made)) == ([D.FAILED], N.FAILED)


@promise(Promise.WAITS)
async def test_a_failed_sibling_is_not_waited_for(bench: Bench) -> None:
    dead = Dead("400", "bad", FailureClass.TERMINAL, letter=False)
    made = await with_fallback(bench, Change(0, 1, dead, bench.now, tried(bench.now, "refused")))
    lease, item = await _fallback_leased(bench)
    assert await bench.settle_rest(lease, item, sent(1, bench.now)) == []
    assert (await stands(bench, made), await bench.status(made)) == ([D.FAILED, D.SENT], N.PARTIAL)


@promise(Promise.WAITS)
async def test_what_is_released_and_not_leased_is_cancelled(bench: Bench) -> None:
    made = await with_fallback(bench)
    bench.clock.advance(WAIT_MS)
    assert await bench.worker.promote_due(bench.now, 100) == 1
    assert await bench.confirm(made, 0) == Confirmed(D.DELIVERED)
    assert (await bench.lease()).items == ()
    assert await stands(bench, made) == [D.DELIVERED, D.CANCELLED]


@promise(Promise.WAITS)
async def test_what_is_leased_goes_on_and_is_not_tried_again(bench: Bench) -> None:
    made, other = await with_fallback(bench), await with_fallback(bench)
    bench.clock.advance(WAIT_MS)
    lease = await bench.take()
    assert [await bench.confirm(each, 0) for each in (made, other)] == [Confirmed(D.DELIVERED)] * 2
    settled = [Settled(made, (sent(1, bench.now),)), Settled(other, (again(1, bench.now),))]
    assert await bench.settle(lease, *settled) == []
    assert await stands(bench, made) == [D.DELIVERED, D.SENT]
    assert await stands(bench, other) == [D.DELIVERED, D.CANCELLED]
    assert {await bench.status(each) for each in (made, other)} == {N.DELIVERED}


@promise(Promise.WAITS)
async def test_withdrawn_a_waiting_target_is_never_sent(bench: Bench) -> None:
    made = await with_fallback(bench)
    await bench.withdraw(made)
    bench.clock.advance(WAIT_MS)
    assert await bench.leasable() == []
    assert (await stands(bench, made), await bench.status(made)) == ([D.SENT, D.CANCELLED], N.SENT)


@promise(Promise.WAITS)
async def test_whichever_worker_is_asked_one_of_both_happens(store: StoreUnderTest) -> None:
    benches = [Bench(store, worker) for worker in await store.open_workers(2)]
    made = [notification(store.clock.now(), user=f"u{n}") for n in range(8)]
    await benches[0].accept(*made)
    for bench in benches:
        lease = await bench.take()
        await bench.settle(lease, *(Settled(each.notification, _first_sent(bench), FALLBACK) for each in lease.items))
    store.clock.advance(WAIT_MS)
    confirming = [benches[n % 2].confirm(each, 0) for n, each in enumerate(made)]
    leases, answers = await asyncio.gather(
        asyncio.gather(*(bench.take() for bench in benches)), asyncio.gather(*confirming)
    )
    assert answers == [Confirmed(D.DELIVERED)] * len(made)
    fired = {item.notification.id for lease in leases for item in lease.items}
    for each in made:
        assert ((await stands(benches[0], each))[1] is D.CANCELLED) is not (each.id in fired)


def _first_sent(bench: Bench) -> tuple[Change, ...]:
    return (sent(0, bench.now),)


async def _fallback_leased(bench: Bench) -> tuple[Lease, WorkItem]:
    lease, item = await bench.take_one()
    assert [(target.n, target.attempt) for target in item.open_targets or ()] == [(1, 0)]
    return lease, item


async def _sends_fallback(bench: Bench, made: Notification) -> None:
    lease, item = await _fallback_leased(bench)
    assert await bench.leasable() == [], "it comes once"
    assert await bench.settle_rest(lease, item, sent(1, bench.now)) == []
    assert await bench.status(made) is N.SENT


# What is unsent of the older one goes, and says by what.


@promise(Promise.SUPERSEDES, Promise.ANSWERS_CANCELS)
async def test_the_older_one_is_cancelled_and_names_what_replaces_it(bench: Bench) -> None:
    made, by = await bench.accepted(), notification(bench.now)
    answer = await bench.worker.amend([Supersede(made.app, made.id, by.id)], bench.now)
    assert answer == [Withdrawn(0)]
    record = (await bench.detail(made)).record
    assert (record.status, record.reason) == (N.CANCELLED, f"superseded by {format_id(by.id)}")
    assert await bench.leasable() == []


@promise(Promise.SUPERSEDES, Promise.ANSWERS_CANCELS)
async def test_a_collapse_key_stands_for_all_older_ones_of_its_user(bench: Bench) -> None:
    old = [_collapsing(bench, "ann", "score"), _collapsing(bench, "ann", "score")]
    others = [_collapsing(bench, "ann", "weather"), _collapsing(bench, "bob", "score"), notification(bench.now)]
    scheduled = msgspec.structs.replace(
        _collapsing(bench, "ann", "score"), scheduled_at=later(bench.now, HOUR_MS), expires_at=later(bench.now, DAY_MS)
    )
    await bench.accept(*old, *others, scheduled)
    by = _collapsing(bench, "ann", "score")
    await bench.accept(by)
    order = Supersede(by.app, Collapse(by.user_id, "score"), by.id)
    assert await bench.worker.amend([order], bench.now) == [Withdrawn(0)]
    assert await bench.worker.amend([order], bench.now) == [NotOpen(None)]
    assert sorted(await bench.leasable()) == sorted(each.id for each in (*others, by))
    assert await bench.status(scheduled) is N.SCHEDULED


@promise(Promise.SUPERSEDES)
async def test_a_collapse_key_stands_for_recipients_of_bulk_jobs_too(bench: Bench) -> None:
    await registered(bench, "ann")
    made = await created(bench, msgspec.structs.replace(job(), content=Content(title="1:0", collapse_key="score")))
    await walked(bench, made)
    lease = await leased(bench)
    (old,) = (item.notification for item in lease.items)
    assert await bench.settle(lease, Settled(old, (again(0, bench.now),), targets(1))) == []
    by = _collapsing(bench, old.user_id, "score")
    await bench.accept(by)
    assert await bench.worker.amend([Supersede(by.app, Collapse(by.user_id, "score"), by.id)], bench.now) == [
        Withdrawn(1)
    ]
    assert await bench.status(old) is N.CANCELLED


@promise(Promise.SUPERSEDES)
async def test_what_is_leased_ends_with_its_attempt(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    assert await bench.worker.amend([Supersede(made.app, made.id, new_id(bench.now))], bench.now) == [TooLate(0)]
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    assert await bench.status(made) is N.CANCELLED


def _collapsing(bench: Bench, user: str, key: str) -> Notification:
    made = notification(bench.now, user=user)
    return msgspec.structs.replace(made, content=Content(title="Order", body=format_id(made.id), collapse_key=key))


@promise(Promise.WAITS)
async def test_a_bulk_recipient_may_have_a_target_that_waits(bench: Bench) -> None:
    await registered(bench, "ann", "bob")
    made = await created(bench, job())
    await walked(bench, made)
    lease = await leased(bench)
    listed = (Target(0, DeviceId("d"), Channel("apns")), FALLBACK[1])
    recipients = [Settled(item.notification, (sent(0, bench.now),), listed) for item in lease.items]
    assert await bench.settle(lease, *recipients) == []
    assert (await record(bench, made)).counts == {N.PROCESSING: 2}
    ann, bob = (item.notification for item in lease.items)
    assert await bench.confirm(ann, 0) == Confirmed(D.DELIVERED)
    assert (await leased(bench)).items == ()
    bench.clock.advance(WAIT_MS)
    await bench.worker.promote_due(bench.now, 100)
    again_leased = await bench.lease(lane=Lane.BULK)
    assert [item.notification.id for item in again_leased.items] == [bob.id]
    assert await bench.settle(again_leased, Settled(bob, (sent(1, bench.now),))) == []
    assert (await record(bench, made)).counts == {N.DELIVERED: 1, N.SENT: 1}
