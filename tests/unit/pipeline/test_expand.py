"""The expansion of bulk jobs: as much as there is room for, no faster than asked, evenly."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.bench import Bench
from tests.contract.bulk_bench import created, job, leased, taken
from tests.contract.stores import MemoryUnderTest
from tests.shows import shows
from waypost.domain.bulk import FAILURES_LIMIT, BulkJob, JobId, JobOrder, Recipient
from waypost.domain.errors import Unavailable
from waypost.domain.ids import UserId
from waypost.domain.time import SECOND_MS, Instant
from waypost.pipeline import expand as expanding
from waypost.pipeline.expand import PORTIONS_A_SECOND, Expanded, FailedJob, Failures, JobPace, Paces, expand
from waypost.ports.bulk import Enqueued, Walking


class Endless:
    """Jobs that never end, with room taken by what was enqueued and not yet worked off."""

    def __init__(self, *rates: int | None) -> None:
        self.jobs = [Walking(JobId(bytes([n])), job().app, rate, False, 0) for n, rate in enumerate(rates)]
        self.enqueued: list[int] = [0 for _ in rates]
        self.faults: dict[JobId, Exception] = {}
        self.order_faults: dict[JobId, Exception] = {}
        self.orders: list[tuple[JobId, JobOrder, str | None]] = []

    async def running(self) -> list[Walking]:
        """See Bulk."""
        waiting = zip(self.jobs, self.enqueued, strict=True)
        return [Walking(each.id, each.app, each.rate, False, n) for each, n in waiting]

    async def enqueue(self, app: object, wanted: JobId, most: int, piece: int) -> Enqueued:
        """See Bulk: a page at most; what is wrong with this job."""
        if wanted in self.faults:
            raise self.faults[wanted]
        recipients = min(most, 5_000)
        self.enqueued[wanted[0]] += recipients
        return Enqueued(recipients, moved=recipients > 0)

    async def order(
        self, app: object, wanted: JobId, order: JobOrder, now: Instant, failure: str | None = None
    ) -> None:
        """See Bulk; what is wrong with ordering about it."""
        if wanted in self.order_faults:
            raise self.order_faults[wanted]
        self.orders.append((wanted, order, failure))


@pytest.mark.asyncio
async def test_a_walk_that_fails_stops_no_other_and_ends_after_three_times() -> None:
    jobs, failures = Endless(None, 10), Failures()
    bad = jobs.jobs[0].id
    jobs.faults = {bad: ValueError("a NUL in a filter")}
    rounds = [
        await expand(jobs, Paces(), failures, Instant(0))  # type: ignore[arg-type]  # what expand needs of the port
        for _ in range(FAILURES_LIMIT)
    ]
    assert [each.failed for each in rounds] == [(), (), (FailedJob(jobs.jobs[0].app, bad, "ValueError"),)]
    assert jobs.orders == [(bad, JobOrder.FAIL, "ValueError")]


@pytest.mark.asyncio
async def test_a_job_that_cannot_even_be_stopped_keeps_no_other_from_being() -> None:
    """It is said, and tried again with its next step."""
    jobs, failures = Endless(None, None, None), Failures()
    first, second, _ = (each.id for each in jobs.jobs)
    jobs.faults = dict.fromkeys((first, second), ValueError("of a walk"))
    jobs.order_faults = {first: KeyError("of an order")}
    rounds = [
        await expand(jobs, Paces(), failures, Instant(0))  # type: ignore[arg-type]  # what expand needs of the port
        for _ in range(FAILURES_LIMIT + 1)
    ]
    assert [(each.id, each.unstopped) for each in rounds[FAILURES_LIMIT - 1].failed] == [
        (first, "KeyError"),
        (second, None),
    ]
    jobs.order_faults.clear()
    again = await expand(jobs, Paces(), failures, Instant(0))  # type: ignore[arg-type]  # what expand needs of the port
    assert (first, None) in [(each.id, each.unstopped) for each in again.failed]


@pytest.mark.asyncio
async def test_a_job_behind_one_that_fails_is_walked() -> None:
    """Nothing is counted against a job where the store is away, or that went on since."""
    jobs, failures = Endless(None, None), Failures()
    bad = jobs.jobs[0].id
    for fault in (ValueError("once"), ValueError("twice"), None, ValueError("once again")):
        jobs.faults = {bad: fault} if fault else {}
        before = jobs.enqueued[1]
        await expand(jobs, Paces(), failures, Instant(0))  # type: ignore[arg-type]  # what expand needs of the port
        assert jobs.enqueued[1] > before
    jobs.faults = {bad: Unavailable("for a while")}
    with pytest.raises(Unavailable):
        await expand(jobs, Paces(), failures, Instant(0))  # type: ignore[arg-type]  # what expand needs of the port
    assert jobs.orders == []


@shows("S2-02")
@pytest.mark.asyncio
async def test_no_more_waits_than_the_limit() -> None:
    """However long nobody works them off; two jobs share the room."""
    jobs = Endless(None, None)
    paces = Paces()
    while (await expand(jobs, paces, Failures(), Instant(0))).moved:  # type: ignore[arg-type]  # what expand needs of the port
        pass
    assert sum(jobs.enqueued) == expanding.WAITING_LIMIT
    assert max(jobs.enqueued) - min(jobs.enqueued) <= 5_000


class Audience(Endless):
    """So many recipients, of whom those that wait are told between two rounds."""

    def __init__(self, recipients: int) -> None:
        super().__init__(None)
        self.left = recipients
        self.most_waiting = 0

    async def enqueue(self, app: object, wanted: JobId, most: int, piece: int) -> Enqueued:
        """See Bulk: a page at most, and no more than are left."""
        page = await super().enqueue(app, wanted, min(most, self.left), piece)
        self.left -= page.recipients
        self.most_waiting = max(self.most_waiting, sum(self.enqueued))
        return page


@shows("S2-02")
@pytest.mark.asyncio
async def test_of_fifty_million_no_more_wait_than_of_any() -> None:
    """Requirement S2-02: all pass, the queue is as deep as the limit, and nothing is kept of those who passed."""
    audience, passed = Audience(50_000_000), 0
    paces, failures = Paces(), Failures()
    tracemalloc.start()
    while audience.left:
        passed += (await expand(audience, paces, failures, Instant(0))).recipients  # type: ignore[arg-type]  # as above
        if audience.most_waiting == expanding.WAITING_LIMIT:
            audience.enqueued = [0] * len(audience.enqueued)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (passed, audience.most_waiting) == (50_000_000, expanding.WAITING_LIMIT)
    assert peak < 1_000_000, "bytes: less than one for 50 recipients"


@shows("S2-05")
@given(rate=st.integers(1, 20_000), looks=st.lists(st.integers(0, 400), min_size=1, max_size=60))
def test_a_job_is_never_faster_than_its_rate(rate: int, looks: list[int]) -> None:
    """In no span of time, whenever it is looked at: the rate times the span, and one second's worth that added up."""
    now, pace = Instant(0), JobPace(rate, Instant(0))
    spent: list[tuple[Instant, int]] = []
    for wait_ms in looks:
        now = Instant(now + wait_ms)
        allowed = pace.allowed(now)
        pace.spend(allowed)
        spent.append((now, allowed))
    assert sum(n for _, n in spent) <= rate * now / SECOND_MS
    for first, (start, _) in enumerate(spent):
        for end, _ in spent[first:]:
            within = sum(n for at, n in spent if start <= at <= end)
            assert within <= rate * (end - start) / SECOND_MS + rate + 1


@shows("S1-144", "S2-07")
def test_a_rate_is_spread_over_the_second() -> None:
    """Looked at every ten milliseconds: ten portions, not one."""
    pace = JobPace(1_000, Instant(0))
    portions = []
    for now in range(0, SECOND_MS + 1, 10):
        allowed = pace.allowed(Instant(now))
        if allowed:
            portions.append(allowed)
            pace.spend(allowed)
    assert portions == [1_000 // PORTIONS_A_SECOND] * PORTIONS_A_SECOND


@pytest.mark.parametrize(("rate", "portion"), [(1, 1), (3, 3), (4, 4), (39, 4), (50, 5), (1_000_000, 500)])
def test_a_slow_job_is_not_cut_into_more_pieces_than_ids_can_name(rate: int, portion: int) -> None:
    """Looked at every millisecond, it gets nothing until there is a portion."""
    pace = JobPace(rate, Instant(0))
    first = next(allowed for now in range(1, 2 * SECOND_MS) if (allowed := pace.allowed(Instant(now))))
    assert portion <= first <= max(portion, rate // SECOND_MS)


@pytest.mark.asyncio
async def test_a_job_with_a_rate_does_not_hold_another() -> None:
    jobs = Endless(10, None)
    expanded = await expand(jobs, Paces(), Failures(), Instant(0))  # type: ignore[arg-type]  # what expand needs of the port
    assert expanded == Expanded(5_000, moved=True, running=2)
    assert jobs.enqueued == [0, 5_000]


@pytest.mark.asyncio
async def test_a_whole_list_is_walked_in_steps() -> None:
    """On a store: what is sent to makes room for the rest."""
    store = MemoryUnderTest()
    bench = Bench(store, (await store.open_workers(1))[0])
    made: BulkJob = await created(bench, job(registry=None))
    await bench.bulk.add(made.app, made.id, [Recipient(UserId(f"u{n:03}")) for n in range(40)])
    await bench.bulk.order(made.app, made.id, JobOrder.START, bench.now)
    assert await expand(bench.bulk, Paces(), Failures(), bench.now) == Expanded(40, moved=True, running=1)
    assert await expand(bench.bulk, Paces(), Failures(), bench.now) == Expanded(0, moved=False, running=1)
    lease = await leased(bench)
    assert len(lease.items) == 40
    assert await bench.settle(lease, *(taken(item, bench.now) for item in lease.items)) == []
