"""Workers of the log come, go and freeze: a task is settled by whoever has it, and by nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter

import pytest

from tests.contract.bench import APP, Bench, notification, sent, targets, tried
from tests.contract.log import LogUnderTest
from tests.shows import shows
from waypost.domain.delivery import FailureClass
from waypost.domain.ids import NotificationId, format_id
from waypost.domain.progress import Stale
from waypost.domain.settlement import Change, Dead, Forget
from waypost.domain.status import NotificationStatus
from waypost.ports.work import Settled, Work

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

NOTIFICATIONS = 200
COMINGS_AND_GOINGS = 2


@pytest.mark.survives(
    "a worker frozen past its session, then awake", on="log", so="it settles nothing that it no longer holds"
)
async def test_a_frozen_worker_settles_nothing_when_it_wakes(log_store: LogUnderTest) -> None:
    """Its consumer stands still for longer than it may: the group goes on without it; its transaction is refused."""
    frozen = Bench(log_store, (await log_store.open_workers(1))[0])
    made = await frozen.accepted()
    lease, item = await frozen.take_one()
    thaw = threading.Event()
    log_store.freeze(frozen.worker, thaw)
    other = Bench(log_store, (await log_store.open_workers(1))[0])
    log_store.forget(frozen.worker)
    taken_over, same = await other.take_one()
    late = asyncio.create_task(frozen.settle_first(lease, item, 1, sent(0, frozen.now, provider_id="late")))
    assert await other.settle_first(taken_over, same, 1, sent(0, other.now, provider_id="first")) == []
    assert not late.done(), "the cluster refuses its transactions"
    thaw.set()
    assert await late == [Stale(made.id, 0, 1)]
    (receipt,) = await other.receipts(made)
    assert receipt.provider_id == "first"


@shows("S2-20", "S2-21", "S3-75")
async def test_workers_coming_and_going_lose_nothing_and_repeat_nothing_settled(log_store: LogUnderTest) -> None:
    """What was settled is never leased again, whoever has its partition by then."""
    settled: set[NotificationId] = set()
    sends: Counter[NotificationId] = Counter()

    async def deliver(worker: Work, leave: asyncio.Event) -> None:
        bench = Bench(log_store, worker)
        while len(settled) < NOTIFICATIONS and not leave.is_set():
            with contextlib.suppress(TimeoutError):  # partitions move for as long as that
                lease = await bench.lease(20)
                ids = {item.notification.id for item in lease.items}
                assert not ids & settled, "settled, and leased again"
                sends.update(ids)
                parts = [Settled(item.notification, (sent(0, bench.now),), targets(1)) for item in lease.items]
                stale = {each.notification_id for each in await bench.settle(lease, *parts)}
                settled.update(ids - stale)

    (first,) = await log_store.open_workers(1)
    made = [notification(log_store.clock.now(), user=f"u{n}") for n in range(NOTIFICATIONS)]
    delivering = asyncio.create_task(deliver(first, asyncio.Event()))
    bench = Bench(log_store, first)
    for n in range(COMINGS_AND_GOINGS):
        share = NOTIFICATIONS // COMINGS_AND_GOINGS
        (guest,) = await log_store.open_workers(1)
        leave = asyncio.Event()
        visiting = asyncio.create_task(deliver(guest, leave))
        await bench.accept(*made[n * share : (n + 1) * share])
        leave.set()
        await visiting
        await log_store.leave(guest)
    await delivering
    assert set(sends) == {one.id for one in made}, "nothing is lost"
    known = await log_store.views.statuses(APP, [one.id for one in made])
    assert set(known.values()) == {NotificationStatus.SENT}


@shows("S1-39", "S2-36")
async def test_dead_letters_and_dead_tokens_are_told_to_others_once_each(log_store: LogUnderTest) -> None:
    """In the transaction that settles them, by names and codes, never with a token or content."""
    bench = Bench(log_store, (await log_store.open_workers(1))[0])
    made = await bench.accepted()
    lease, item = await bench.take_one()
    dead = Dead("BadTopic", "bad topic", FailureClass.TERMINAL, letter=True)
    gone = Forget("Unregistered", bench.now, letter=False)
    before = await log_store.ends([log_store.topics.dead, log_store.topics.evictions])
    refused = tried(bench.now, "refused")
    ends = Change(0, 1, dead, bench.now, refused), Change(1, 1, gone, bench.now, refused)
    assert await bench.settle_first(lease, item, 2, *ends) == []
    ((letter,), (eviction,)) = [
        await log_store.said(topic, before) for topic in (log_store.topics.dead, log_store.topics.evictions)
    ]
    named = {"notification_id": format_id(made.id), "app": APP, "user_id": made.user_id, "attempt": 1, "format": 1}
    assert letter.items() >= (named | {"device_id": "d0", "code": "BadTopic", "reason": "bad topic"}).items()
    assert eviction.items() >= (named | {"device_id": "d1", "code": "Unregistered"}).items()
    assert (letter["kind"], eviction["kind"]) == ("visible", "visible")
    assert set(eviction) == {*named, "kind", "device_id", "at", "code", "since"}
