"""What more workers bring, counted and not timed: each has room for so much, and a round of all of them takes it all.

The test machine has two cores, so a second of work is no measure of it; what a worker has in hand is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.contract import bulk_bench
from tests.contract.bench import Bench, notification, sent, targets
from tests.contract.stores import StoreUnderTest
from tests.shows import shows
from waypost.domain.ids import UserId
from waypost.domain.notification import Lane
from waypost.ports.work import Lease, Settled, WorkItem

pytestmark = pytest.mark.asyncio

USERS = [UserId(f"user-{n}") for n in range(120)]
ROOM = 10
"""As much as a worker leases at a time."""
ALONE = len(USERS) // ROOM
"""The rounds of one worker."""
Settle = Callable[[WorkItem], Settled]


async def rounds(benches: Sequence[Bench], lane: Lane, settled: Settle) -> int:
    """All workers lease at the same moment and settle what they have, until there is nothing left; how often."""
    seen: list[bytes] = []
    number = 0
    while True:
        leases: list[tuple[Bench, Lease]] = [(bench, await bench.take(ROOM, lane)) for bench in benches]
        taken = [item.notification.id for _, lease in leases for item in lease.items]
        if not taken:
            assert len(seen) == len(set(seen)) == len(USERS)
            return number
        assert max(len(lease.items) for _, lease in leases) <= ROOM, "no worker holds more than it has room for"
        for bench, lease in leases:
            if lease.items:
                assert await bench.settle(lease, *map(settled, lease.items)) == []
        seen += taken
        number += 1


async def of_notifications(benches: Sequence[Bench]) -> int:
    """One notification for each user."""
    now = benches[0].now
    await benches[0].accept(*(notification(now, user=user) for user in USERS))
    return await rounds(benches, Lane.NORMAL, lambda it: Settled(it.notification, (sent(0, now),), targets(1)))


async def of_a_broadcast(benches: Sequence[Bench]) -> int:
    """One job to all users, in pieces of two."""
    now = benches[0].now
    await bulk_bench.registered(benches[0], *USERS)
    made = await bulk_bench.created(benches[0], bulk_bench.job())
    assert await bulk_bench.walked(benches[0], made, piece=2) == len(USERS)
    return await rounds(benches, Lane.BULK, lambda it: bulk_bench.taken(it, now))


@shows("S1-104", "S1-120", "S3-75")
@pytest.mark.parametrize("work", [of_notifications, of_a_broadcast])
@pytest.mark.parametrize("count", [1, 2, 4])
async def test_twice_the_workers_need_half_the_rounds(
    store: StoreUnderTest, count: int, work: Callable[[Sequence[Bench]], Awaitable[int]]
) -> None:
    """Up to what is left over, where users are divided by shards (requirements S1-104 and S1-120)."""
    took = await work([Bench(store, worker) for worker in await store.open_workers(count)])
    assert ALONE / count <= took <= ALONE / count * 1.75
