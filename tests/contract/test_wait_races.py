"""A confirmation against the timer of what waits for it: of each pair exactly one wins, whichever worker is asked."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence

import pytest

from tests.contract.bench import APP, Bench, notification, sent
from tests.contract.stores import StoreUnderTest
from tests.contract.wait_scenarios import FALLBACK, WAIT_MS
from tests.tables import AddRow
from waypost.domain.amendment import Confirm, Confirmed
from waypost.domain.ids import NotificationId
from waypost.domain.notification import Notification
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.ports.work import Settled

pytestmark = pytest.mark.asyncio

TABLE = "confirmed at the moment that a fallback is due"
PAGE, ASKED = 500, 25


@pytest.mark.timeout(600)
@pytest.mark.parametrize("races", [1_000, pytest.param(20_000, marks=[pytest.mark.long, pytest.mark.engines])])
async def test_a_fallback_is_sent_once_or_cancelled(
    store: StoreUnderTest, races: int, table: AddRow, request: pytest.FixtureRequest
) -> None:
    benches = [Bench(store, worker) for worker in await store.open_workers(2)]
    chance = random.Random(races)
    fired = cancelled = 0
    for page in range(0, races, PAGE):
        made = [notification(store.clock.now(), user=f"u{page + n}") for n in range(PAGE)]
        await _wait_all(benches, made)
        store.clock.advance(WAIT_MS)
        chance.shuffle(made)
        leased, _ = await asyncio.gather(_fire(benches), _confirm(benches, made))
        leased += await _fire(benches)
        assert len(leased) == len(set(leased)), "none is leased twice"
        statuses = await store.views.statuses(APP, [each.id for each in made])
        assert set(statuses.values()) == {NotificationStatus.DELIVERED}
        second = {each.id: (await benches[0].receipts(each))[1].status for each in made}
        assert {one for one, status in second.items() if status is DeliveryStatus.SENT} == set(leased)
        assert set(second.values()) <= {DeliveryStatus.SENT, DeliveryStatus.CANCELLED}
        fired, cancelled = fired + len(leased), cancelled + PAGE - len(leased)
    table(TABLE, engine=request.node.callspec.params["store"], races=races, sent=fired, cancelled=cancelled)


async def _wait_all(benches: Sequence[Bench], made: Sequence[Notification]) -> None:
    """Send the first target of each; the second waits."""
    await benches[0].accept(*made)
    settled = 0
    while settled < len(made):
        for bench in benches:
            lease = await bench.take(PAGE)
            parts = [Settled(item.notification, (sent(0, bench.now),), FALLBACK) for item in lease.items]
            assert await bench.settle(lease, *parts) == []
            settled += len(parts)


async def _fire(benches: Sequence[Bench]) -> list[NotificationId]:
    """Send what is due, a few at a time, until nothing more is."""
    fired: list[NotificationId] = []
    found = True
    while found:
        found = False
        for bench in benches:
            lease = await bench.take(ASKED)
            parts = [Settled(item.notification, (sent(1, bench.now),)) for item in lease.items]
            assert await bench.settle(lease, *parts) == []
            fired += [item.notification.id for item in lease.items]
            found |= bool(parts)
            await asyncio.sleep(0)  # the memory store never lets anybody else run
    return fired


async def _confirm(benches: Sequence[Bench], made: Sequence[Notification]) -> None:
    """Confirm all of them, a few at a time, asking now this worker and now that."""
    for n, some in enumerate(_parts(made)):
        bench = benches[n % len(benches)]
        orders = [Confirm(APP, each.id, 0, DeliveryStatus.DELIVERED, bench.now) for each in some]
        assert set(await bench.worker.amend(orders, bench.now)) == {Confirmed(DeliveryStatus.DELIVERED)}
        await asyncio.sleep(0)


def _parts(made: Sequence[Notification]) -> Iterator[Sequence[Notification]]:
    return (made[at : at + ASKED] for at in range(0, len(made), ASKED))
