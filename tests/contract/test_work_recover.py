"""Work.amend: remedies for what nobody has, on every engine; what a worker has is left alone."""

from __future__ import annotations

import pytest

from tests.contract.bench import OTHER_APP, RETRY_MS, Bench, again, new_id, parked, sent
from tests.contract.promised import promise
from waypost.domain.amendment import Amended, NotOpen, Recover, Recovered, Remedy, TooLate
from waypost.domain.ids import AppId, NotificationId
from waypost.domain.notification import Notification
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, later
from waypost.ports.promises import Promise
from waypost.ports.views import DeadQuery
from waypost.ports.work import Accepted, Replay, Settled

pytestmark = [pytest.mark.asyncio, promise(Promise.RECOVERS)]

D, N = DeliveryStatus, NotificationStatus


async def helped(
    bench: Bench, made: Notification, remedy: Remedy, app: AppId | None = None, of: NotificationId | None = None
) -> Amended:
    """The answer to one remedy."""
    order = Recover(app or made.app, of or made.id, remedy, "nobody moves it")
    return (await bench.worker.amend([order], bench.now))[0]


async def test_what_a_worker_has_is_left_alone_and_its_outcome_counts(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    for remedy in Remedy:
        assert await helped(bench, made, remedy) == TooLate(0)
    await bench.settle_first(lease, item, 2, sent(0, bench.now))
    for remedy in Remedy:
        assert await helped(bench, made, remedy) == TooLate(1)
    assert await bench.settle_rest(lease, item, sent(1, bench.now)) == []
    assert await bench.status(made) == N.SENT
    for remedy in Remedy:
        assert await helped(bench, made, remedy) == NotOpen(N.SENT)


async def test_what_is_unknown_or_of_another_app_changes_nothing(bench: Bench) -> None:
    made = await bench.accepted()
    moves = await bench.moves()
    assert await helped(bench, made, Remedy.FAILED, app=OTHER_APP) == NotOpen(None)
    assert await helped(bench, made, Remedy.FAILED, of=new_id(bench.now)) == NotOpen(None)
    assert await helped(bench, made, Remedy.LOOK) == Recovered()
    assert await bench.moves() == moves
    assert await bench.leasable() == [made.id]


async def test_fresh_work_is_offered_again_and_leased_once(bench: Bench) -> None:
    made = await bench.accepted()
    assert await helped(bench, made, Remedy.AGAIN) == Recovered(1)
    lease = await bench.take()
    assert [each.notification.id for each in lease.items] == [made.id]
    assert list((await bench.take()).items) == []
    await bench.settle_first(lease, lease.items[0], 1, sent(0, bench.now))
    assert await bench.status(made) == N.SENT


async def test_again_hastens_what_is_overdue_and_nothing_that_has_its_time(bench: Bench) -> None:
    """A retry, and a target under an open breaker, wait as before."""
    made = await bench.accepted()
    lease, item = await bench.take_one()
    over = later(bench.now, HOUR_MS)
    await bench.settle_first(lease, item, 3, again(0, bench.now), parked(1, bench.now, over), sent(2, bench.now))
    before = await bench.receipts(made)
    assert await helped(bench, made, Remedy.AGAIN) == Recovered(0)
    assert await bench.receipts(made) == before
    bench.clock.advance(RETRY_MS + 1)
    assert await helped(bench, made, Remedy.AGAIN) == Recovered(1)
    receipts = await bench.receipts(made)
    assert [each.due_at for each in receipts] == [bench.now, over, None]
    lease, item = await bench.take_one()
    assert [each.n for each in item.open_targets or ()] == [0]


@pytest.mark.parametrize(("remedy", "delivery"), [(Remedy.SENT, D.SENT), (Remedy.FAILED, D.FAILED)])
async def test_what_nobody_has_ends_whole_with_journal_and_counters(
    bench: Bench, remedy: Remedy, delivery: DeliveryStatus
) -> None:
    fresh = await bench.accepted()
    tried = await bench.accepted(user="bob")
    lease = await bench.take()
    (item,) = [each for each in lease.items if each.notification.id == tried.id]
    (other,) = [each for each in lease.items if each.notification.id == fresh.id]
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    await bench.settle(lease, Settled(other.notification, given_back=True))
    for made in (fresh, tried):
        assert await helped(bench, made, remedy) == Recovered(1)
        assert await bench.status(made) == N(delivery.value)
    assert [each.status for each in await bench.receipts(tried)] == [delivery]
    assert {status: n for status, n in (await bench.store.views.balance()).items() if n} == {N(delivery.value): 2}
    ends = [move for move in await bench.moves() if move.after == N(delivery.value)]
    assert len(ends) == 3  # both notifications, and the one target
    bench.clock.advance(DAY_MS)
    assert list((await bench.take()).items) == []


async def test_what_failed_by_a_remedy_is_a_dead_letter_and_can_be_replayed(bench: Bench) -> None:
    made = await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, again(0, bench.now))
    assert await helped(bench, made, Remedy.FAILED) == Recovered(1)
    (letter,) = await bench.store.views.dead(DeadQuery(made.app))
    assert (letter.receipt.code, letter.receipt.reason) == ("stuck", "nobody moves it")
    order = Replay(made.app, made.id, bench.now, later(bench.now, HOUR_MS))
    assert await bench.accept(order) == [Accepted(made.id)]
    lease, item = await bench.take_one()
    await bench.settle_rest(lease, item, sent(0, bench.now, attempt=2))
    assert await bench.status(made) == N.SENT
