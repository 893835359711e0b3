"""What must be asked where routing and sending are apart: who leases what, and what happens between the two."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import psycopg
import pytest
import pytest_asyncio

from tests.contract.bench import APP, Bench, again, sent, targets
from tests.contract.claims import ClaimsUnderTest, PublishedUnderTest
from tests.shows import shows
from waypost.domain.amendment import TooLate, Withdrawn
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Lane, Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import MINUTE_MS
from waypost.ports.outbox import EntryState, OutboxQuery
from waypost.ports.work import Lease, Settled, Work

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]

Shown = tuple[NotificationId, int | None, EntryState]


@pytest_asyncio.fixture
async def stack(emptied_postgres: str, redis_url: str) -> AsyncIterator[PublishedUnderTest]:
    """An empty store; routing and sending are apart, and both are published."""
    opened = PublishedUnderTest(emptied_postgres, redis_url, apart=True)
    await opened.open()
    yield opened
    await opened.close()


async def benches(stack: PublishedUnderTest, count: int) -> list[Bench]:
    """Workers that do both."""
    return [Bench(stack, worker) for worker in await stack.open_workers(count)]


async def leased(stack: PublishedUnderTest, work: Work) -> Lease:
    """What one half leases."""
    return await work.lease(Lane.NORMAL, 100, stack.clock.now())


async def routed(stack: PublishedUnderTest, bench: Bench) -> Notification:
    """A notification to two devices, routed and handed over."""
    made = await bench.accepted()
    lease = await leased(stack, stack.router(bench.worker))
    (item,) = lease.items
    assert await bench.settle(lease, Settled(item.notification, (), targets(2), given_back=True)) == []
    return made


async def shown(stack: PublishedUnderTest) -> Sequence[Shown]:
    """What operators see of the outbox, in the order in which it is published."""
    entries = await stack.outbox.entries(OutboxQuery(APP))
    return [(entry.notification_id, entry.n, entry.state) for entry in reversed(entries)]


@shows("S2-24")
async def test_what_is_to_be_routed_and_what_is_to_be_sent_travel_apart(stack: PublishedUnderTest) -> None:
    """Requirement S2-24: each half leases its own alone, and the outbox shows how far a notification has come."""
    (bench,) = await benches(stack, 1)
    router, sender = stack.router(bench.worker), stack.sender(bench.worker)
    assert (await leased(stack, sender)).items == ()
    made = await routed(stack, bench)
    assert await bench.status(made) is NotificationStatus.PROCESSING
    assert await shown(stack) == [
        (made.id, None, EntryState.PENDING),
        (made.id, 0, EntryState.PENDING),
        (made.id, 1, EntryState.PENDING),
    ]
    assert (await leased(stack, router)).items == ()
    await stack.relay_of(bench.worker).relay()
    assert [await stack.at_the_broker(topic) for topic in ("work:", "delivery:")] == [1, 1], "by notification"
    lease = await leased(stack, sender)
    (item,) = lease.items
    assert [(target.n, target.attempt) for target in item.open_targets or ()] == [(0, 0), (1, 0)]
    assert await bench.settle_rest(lease, item, sent(0, bench.now), again(1, bench.now)) == []
    bench.clock.advance(MINUTE_MS)
    assert await bench.worker.promote_due(bench.now, 100) == 1
    assert (await leased(stack, router)).items == (), "a retry is routed already"
    lease = await leased(stack, sender)
    assert await bench.settle_rest(lease, lease.items[0], sent(1, bench.now, 2)) == []
    assert await bench.status(made) is NotificationStatus.SENT


async def test_what_was_withdrawn_between_the_two_is_not_sent(stack: PublishedUnderTest) -> None:
    """All of it is cancelled, whatever travels; once a deliverer has it, it is too late."""
    bench, other = await benches(stack, 2)
    made = await routed(stack, bench)
    assert await other.withdraw(made) == Withdrawn(2)
    assert (await leased(stack, stack.sender(bench.worker))).items == ()
    assert await bench.status(made) is NotificationStatus.CANCELLED
    second = await routed(stack, bench)
    await leased(stack, stack.sender(bench.worker))
    assert await other.withdraw(second) == TooLate(2)


@shows("S3-49")
async def test_the_targets_of_a_notification_that_is_gone_lead_to_nothing(
    stack: PublishedUnderTest, emptied_postgres: str
) -> None:
    """Requirements S3-49: they are handed to no sender, and what is behind them is."""
    (bench,) = await benches(stack, 1)
    gone, behind = await routed(stack, bench), await routed(stack, bench)
    with psycopg.connect(emptied_postgres, autocommit=True) as connection:
        assert connection.execute("DELETE FROM notification WHERE id = %s", (gone.id,)).rowcount == 1
    lease = await leased(stack, stack.sender(bench.worker))
    assert [item.notification.id for item in lease.items] == [behind.id]


@shows("S2-39")
async def test_either_half_may_be_gone_and_another_goes_on(stack: PublishedUnderTest) -> None:
    """A router's leases are routed again, a deliverer's are sent by another, with the same attempt."""
    dying, bench, last = await benches(stack, 3)
    made = await dying.accepted()
    assert len((await leased(stack, stack.router(dying.worker))).items) == 1
    await stack.crash(dying.worker)
    await bench.worker.promote_due(bench.now, 100)
    lease = await leased(stack, stack.router(bench.worker))
    assert await bench.settle(lease, Settled(lease.items[0].notification, (), targets(1), given_back=True)) == []
    assert len((await leased(stack, stack.sender(bench.worker))).items) == 1
    await stack.crash(bench.worker)
    await last.worker.promote_due(last.now, 100)
    assert (await leased(stack, stack.router(last.worker))).items == ()
    lease = await leased(stack, stack.sender(last.worker))
    (item,) = lease.items
    assert await last.settle_rest(lease, item, sent(0, last.now)) == []
    assert await last.status(made) is NotificationStatus.SENT


async def test_the_hand_over_may_be_changed_while_work_waits(stack: PublishedUnderTest, emptied_postgres: str) -> None:
    """What was routed is sent by workers that do both, and they route what waits for that, too."""
    (bench,) = await benches(stack, 1)
    made = await routed(stack, bench)
    assert await bench.worker.promote_due(bench.now, 100) == 0, "it waits already"
    both = ClaimsUnderTest(emptied_postgres)
    await both.open()
    (worker,) = await both.open_workers(1)
    together = Bench(both, worker)
    second = await together.accepted(user="bob")
    lease = await together.lease()
    found = {item.notification.id: item.open_targets and len(item.open_targets) for item in lease.items}
    assert found == {made.id: 2, second.id: None}
    await both.close()
