"""A bulk job's memory does not grow with its audience: nothing holds more than a page and a few pieces of it."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore
from tests.contract.bulk_bench import job, taken
from tests.contract.clock import START
from tests.shows import shows
from waypost.domain.bulk import PIECE, BulkJob, JobOrder, Recipient
from waypost.domain.ids import UserId
from waypost.domain.notification import Lane
from waypost.domain.time import later
from waypost.ports.bulk import JobCreated
from waypost.stores.sql.store import Store

SMALL, LARGE = 2_500, 12_500


async def _made(store: Store, users: int, n: int) -> BulkJob:
    answer = await store.bulk.create(job(n, registry=None), None, b"")
    assert isinstance(answer, JobCreated)
    made = answer.record.job
    for start in range(0, users, 1_000):
        page = [Recipient(UserId(f"u{user:06}")) for user in range(start, min(start + 1_000, users))]
        await store.bulk.add(made.app, made.id, page)
    await store.bulk.order(made.app, made.id, JobOrder.START, START)
    return made


async def _told_everybody(store: Store, made: BulkJob) -> int:
    """Walk, lease and settle to the end, a piece at a time; how many."""
    told = 0
    while True:
        await store.bulk.enqueue(made.app, made.id, PIECE, PIECE)
        lease = await store.work.lease(Lane.BULK, PIECE, later(START, 1_000))
        if not lease.items:
            return told
        await store.work.settle(lease, [taken(item, START) for item in lease.items])
        told += len(lease.items)


@shows("S2-02")
@pytest.mark.asyncio
async def test_memory_is_flat_as_the_audience_grows(open_at: OpenStore, tmp_path: Path) -> None:
    """Five times the recipients, the same peak: each job is told to the end in one process.

    What waits for the garbage collector moves a peak of about 1 MB by a quarter; holding 10,000 recipients more, at
    the 200 bytes that the smallest of them takes, would double it.
    """
    store = await open_at(tmp_path / "a.db")
    await store.shards.acquire()
    await _told_everybody(store, await _made(store, PIECE, 0))  # what is imported and cached once
    peaks = []
    for n, users in enumerate((SMALL, LARGE), start=1):
        made = await _made(store, users, n)
        gc.collect()  # a collection that falls into one run and not the other is no growth
        tracemalloc.start()
        assert await _told_everybody(store, made) == users
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.6 * peaks[0], peaks


@shows("S2-03")
@pytest.mark.asyncio
async def test_the_audience_is_read_in_pages_of_5000(open_at: OpenStore, tmp_path: Path) -> None:
    """Requirements S2-03: where there is room for all, a step takes a page; its last recipient opens the next."""
    store = await open_at(tmp_path / "a.db")
    await store.shards.acquire()
    made = await _made(store, 12_000, 0)
    steps = [await store.bulk.enqueue(made.app, made.id, 12_000, PIECE) for _ in range(3)]
    assert [step.recipients for step in steps] == [4_999, 4_999, 2_002]
    assert [step.walked for step in steps] == [False, False, True]
