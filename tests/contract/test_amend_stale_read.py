"""What comes due on PostgreSQL while another worker takes it back: that is read or written, not committed yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import pytest
import pytest_asyncio

from tests.contract.bench import APP, Bench, again, notification, parked, sent, targets
from tests.contract.claims import ClaimsUnderTest
from tests.contract.gate import Gate
from tests.contract.wait_scenarios import FALLBACK, WAIT_MS
from waypost.domain.amendment import Amendment, Confirm, Withdraw
from waypost.domain.delivery import Target
from waypost.domain.notification import Notification
from waypost.domain.settlement import Change
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import DAY_MS, Instant, later
from waypost.ports.work import Settled

pytestmark = [pytest.mark.engines, pytest.mark.asyncio]

N = 20
"""Of so many users some are in the shards of either worker."""
_CONDITION = "breaker:demo/apns"


@pytest_asyncio.fixture
async def benches(emptied_postgres: str) -> AsyncIterator[list[Bench]]:
    """Two workers of an empty store."""
    stack = ClaimsUnderTest(emptied_postgres)
    await stack.open()
    yield [Bench(stack, worker) for worker in await stack.open_workers(2)]
    await stack.close()


async def _scheduled(bench: Bench) -> list[Notification]:
    due = later(bench.now, WAIT_MS)
    made = [notification(bench.now, user=f"u{n}", scheduled_at=due) for n in range(N)]
    await bench.accept(*made)
    return made


async def _settled(bench: Bench, change: Change, wanted: Sequence[Target]) -> list[Notification]:
    made = [notification(bench.now, user=f"u{n}") for n in range(N)]
    await bench.accept(*made)
    lease = await bench.take(N)
    parts = [Settled(item.notification, (change,), tuple(wanted)) for item in lease.items]
    assert await bench.settle(lease, *parts) == []
    return made


async def _retried(bench: Bench) -> list[Notification]:
    return await _settled(bench, again(0, bench.now, wait_ms=WAIT_MS), targets(1))


async def _parked(bench: Bench) -> list[Notification]:
    return await _settled(bench, parked(0, bench.now, later(bench.now, DAY_MS), _CONDITION), targets(1))


async def _waiting(bench: Bench) -> list[Notification]:
    return await _settled(bench, sent(0, bench.now), FALLBACK)


def _cancel(made: Notification, now: Instant) -> Amendment:
    return Withdraw(APP, made.id, "cancelled")


def _confirm(made: Notification, now: Instant) -> Amendment:
    return Confirm(APP, made.id, 0, DeliveryStatus.DELIVERED, now)


Prepare = Callable[[Bench], Awaitable[list[Notification]]]


@pytest.mark.parametrize("before", [("COMMIT",), ("UPDATE", "INSERT", "DELETE")], ids=["written", "read"])
@pytest.mark.parametrize(
    ("prepare", "order", "lifted"),
    [
        pytest.param(_scheduled, _cancel, {}, id="scheduled"),
        pytest.param(_retried, _cancel, {}, id="retry"),
        pytest.param(_parked, _cancel, {_CONDITION: N}, id="parked"),
        pytest.param(_waiting, _confirm, {}, id="fallback"),
    ],
)
async def test_what_is_being_taken_back_is_not_leased_as_it_comes_due(
    benches: list[Bench],
    prepare: Prepare,
    order: Callable[[Notification, Instant], Amendment],
    lifted: Mapping[str, int],
    before: tuple[str, ...],
) -> None:
    """The other worker's timer looks before the order's commit, or its first write, and finds it taken back after."""
    asked, other = benches
    stack, writing = asked.store, Gate()
    assert isinstance(stack, ClaimsUnderTest)
    made = await prepare(asked)
    stack.clock.advance(WAIT_MS)
    stack.watch_writer(asked.worker, lambda sql: writing.wait() if sql.startswith(before) else None, lambda: None)
    amending = asyncio.create_task(asked.worker.amend([order(each, asked.now) for each in made], asked.now))
    await writing.reached()
    await other.worker.promote_due(other.now, N, lifted)
    leased = (await other.take(N)).items
    writing.open()
    await amending
    assert leased == ()
    assert await other.leasable() == []
