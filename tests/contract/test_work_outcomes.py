"""Work.settle: the first outcome of an attempt wins, and the journal tells of it once."""

from __future__ import annotations

import pytest

from tests.contract.bench import APP, RETRY_MS, TOKEN_HASH, Bench, again, parked, sent, targets, tried
from tests.contract.promised import promise
from tests.shows import shows
from waypost.domain.channel import Channel
from waypost.domain.delivery import FailureClass, Target
from waypost.domain.ids import DeviceId
from waypost.domain.moves import DeliveryMoved, NotificationMoved
from waypost.domain.progress import Stale
from waypost.domain.settlement import (
    Change,
    Dead,
    Forget,
)
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import HOUR_MS, SECOND_MS, later
from waypost.ports.promises import Promise
from waypost.ports.work import Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.SETTLES_WHOLE)]

DEAD = Dead("BadTopic", "bad topic", FailureClass.TERMINAL, letter=True)


async def test_a_device_registered_later_does_not_join_a_stored_list(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, again(0, bench.now))
    late = Settled(item.notification, (sent(1, bench.now), sent(2, bench.now)), targets(3))
    assert await bench.settle(lease, late) == [Stale(made.id, 2, 1)]
    assert len(await bench.receipts(made)) == 2


async def test_the_first_outcome_of_an_attempt_wins(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now, provider_id="first"))
    assert await bench.settle_rest(lease, item, sent(0, bench.now, provider_id="second")) == [Stale(made.id, 0, 1)]
    assert (await bench.receipts(made))[0].provider_id == "first"


async def test_two_outcomes_of_one_attempt_in_one_settle(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    twice = (sent(0, bench.now, provider_id="first"), sent(0, bench.now, provider_id="second"))
    assert await bench.settle_first(lease, item, 1, *twice) == [Stale(made.id, 0, 1)]
    assert (await bench.receipts(made))[0].provider_id == "first"


@pytest.mark.parametrize("attempt", [0, 2, 7])
async def test_an_outcome_of_another_attempt_is_stale(bench: Bench, attempt: int) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    stale = await bench.settle_first(lease, item, 1, sent(0, bench.now, attempt))
    assert stale == [Stale(made.id, 0, attempt)]
    assert (await bench.receipts(made))[0].status is DeliveryStatus.PENDING


async def test_a_stale_change_does_not_hold_back_its_neighbours(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    stale = await bench.settle_first(lease, item, 2, sent(0, bench.now, 5), sent(1, bench.now))
    assert stale == [Stale(made.id, 0, 5)]
    assert [receipt.status for receipt in await bench.receipts(made)] == [DeliveryStatus.PENDING, DeliveryStatus.SENT]


@shows("S3-46")
async def test_a_change_of_a_final_notification_is_stale(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now))
    assert await bench.settle_rest(lease, item, again(0, bench.now, attempt=2)) == [Stale(made.id, 0, 2)]
    assert await bench.status(made) is NotificationStatus.SENT


@promise(Promise.JOURNALS)
async def test_the_journal_tells_of_each_change_and_of_the_end_once(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    since = later(bench.now, -HOUR_MS)
    gone = Change(1, 1, Forget("Unregistered", since, letter=True), bench.now, tried(bench.now, "gone"))
    await bench.settle_first(lease, item, 2, sent(0, bench.now), gone)
    deliveries = [move for move in await bench.moves() if isinstance(move, DeliveryMoved)]
    assert [(move.n, move.attempt, move.before, move.after) for move in deliveries] == [
        (0, 1, DeliveryStatus.PENDING, DeliveryStatus.SENT),
        (1, 1, DeliveryStatus.PENDING, DeliveryStatus.FAILED),
    ]
    assert (deliveries[1].gone_since, deliveries[1].token_hash) == (since, TOKEN_HASH)
    assert (deliveries[0].app, deliveries[0].device_id) == (APP, "d0")
    finished = [move for move in await bench.moves() if isinstance(move, NotificationMoved)][1:]
    assert [(move.notification_id, move.after) for move in finished] == [(made.id, NotificationStatus.PARTIAL)]


@promise(Promise.JOURNALS)
async def test_the_journal_tells_of_every_attempt_made(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    bench.clock.advance(RETRY_MS)
    lease, item = await bench.take_one()
    await bench.settle_rest(lease, item, sent(0, bench.now, 2))
    deliveries = [move for move in await bench.moves() if isinstance(move, DeliveryMoved)]
    assert [(move.attempt, move.after) for move in deliveries] == [
        (1, DeliveryStatus.PENDING),
        (2, DeliveryStatus.SENT),
    ]


@promise(Promise.JOURNALS)
async def test_parking_leaves_no_trace_in_the_journal(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    before = await bench.moves()
    await bench.settle_first(lease, item, 1, parked(0, bench.now, made.expires_at))
    assert await bench.moves() == before


@promise(Promise.JOURNALS)
async def test_a_stale_change_leaves_no_trace_in_the_journal(bench: Bench) -> None:
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now))
    before = await bench.moves()
    await bench.settle_rest(lease, item, again(0, bench.now))
    assert await bench.moves() == before


@shows("S4-36")
async def test_the_same_settle_again_is_refused_whole(bench: Bench) -> None:
    """What a worker repeats when it never got the answer."""
    made = await bench.accepted()
    lease, item = await bench.take_one()
    part = Settled(item.notification, (sent(0, bench.now), again(1, bench.now, wait_ms=SECOND_MS)), targets(2))
    assert await bench.settle(lease, part) == []
    before = await bench.detail(made)
    assert await bench.settle(lease, part) == [Stale(made.id, 0, 1), Stale(made.id, 1, 1)]
    assert await bench.detail(made) == before


async def test_a_closed_target_takes_no_further_attempt(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, sent(0, bench.now))
    assert await bench.settle_rest(lease, item, again(0, bench.now, attempt=2)) == [Stale(made.id, 0, 2)]
    assert (await bench.receipts(made))[0].status is DeliveryStatus.SENT


async def test_a_number_that_means_another_device_than_the_stored_one_is_stale(bench: Bench) -> None:
    """Two workers may have resolved the targets at different times; the list stored first counts."""
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 2, parked(0, bench.now, made.expires_at))
    other = (Target(0, DeviceId("d9"), Channel("apns")), Target(1, DeviceId("d1"), Channel("apns")))
    late = Settled(item.notification, (sent(0, bench.now), sent(1, bench.now)), other)
    assert await bench.settle(lease, late) == [Stale(made.id, 0, 1)]
    assert [receipt.status for receipt in await bench.receipts(made)] == [DeliveryStatus.PENDING, DeliveryStatus.SENT]
