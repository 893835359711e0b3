"""Equal requests at one moment, and two workers on one heap of work: never a second dispatch."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.contract.bench import Bench, by_content, by_key, notification, sent
from tests.contract.stores import StoreUnderTest
from tests.shows import shows
from waypost.domain.status import NotificationStatus
from waypost.ports.work import Acceptance, Accepted, Duplicate, NewNotification, Settled

pytestmark = pytest.mark.asyncio

ITEMS = 10_000
PAGE = 500


@shows("S1-26", "S1-107", "S1-143")
@pytest.mark.parametrize("claim", [by_content, lambda made: by_key(made, "order-7")])
async def test_of_a_thousand_equal_requests_at_one_moment_one_is_accepted(store: StoreUnderTest, claim) -> None:  # type: ignore[no-untyped-def]  # either claim
    """Through two workers (requirements S1-26, S1-143); all others are told its id."""
    workers = await store.open_workers(2)
    bench = Bench(store, workers[0])
    made = [notification(bench.now, body="the same") for _ in range(1_000)]
    answers: list[Acceptance] = []

    async def say(n: int) -> None:
        answers.extend(await workers[n % 2].accept([NewNotification(made[n], (claim(made[n]),))]))

    await asyncio.gather(*(say(n) for n in range(len(made))))
    accepted = [answer.id for answer in answers if isinstance(answer, Accepted)]
    assert len(accepted) == 1
    assert {answer.first_id for answer in answers if isinstance(answer, Duplicate)} == set(accepted)
    leases = [await Bench(store, worker).take() for worker in workers]
    assert [item.notification.id for lease in leases for item in lease.items] == accepted


@shows("S3-76")
async def test_two_workers_send_each_of_ten_thousand_once(store: StoreUnderTest) -> None:
    """Requirements S3-76: whoever leases it holds it."""
    benches = [Bench(store, worker) for worker in await store.open_workers(2)]
    made = [notification(benches[0].now, user=f"u{n}") for n in range(ITEMS)]
    for n in range(0, ITEMS, PAGE):
        await benches[0].accept(*made[n : n + PAGE])
    handed: Counter[bytes] = Counter()

    async def deliver(bench: Bench) -> None:
        while (lease := await bench.lease(PAGE)).items:
            handed.update(item.notification.id for item in lease.items)
            await asyncio.sleep(0)
            done = (Settled(item.notification, verdict=NotificationStatus.NO_TARGETS) for item in lease.items)
            assert await bench.settle(lease, *done) == []

    await asyncio.gather(*map(deliver, benches))
    assert handed == Counter(each.id for each in made)


@shows("S2-25")
async def test_what_is_recorded_as_sent_is_not_sent_again(store: StoreUnderTest) -> None:
    """A redelivery after a crash names the other targets alone (requirements S2-25)."""
    bench = Bench(store, (await store.open_workers(1))[0])
    await bench.accepted()
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 3, sent(0, bench.now), sent(2, bench.now))
    after = await bench.crash()
    _, again = await after.take_one()
    assert again.open_targets is not None
    assert [target.n for target in again.open_targets] == [1]
