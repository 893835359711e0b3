"""The whole path: REST in, SQLite, route, APNs, FCM and Web Push to the bench's gateway, receipts; CPU a delivery.

Everything runs on the same cores: Waypost, gateway and load generator. Deliveries a second are what they did together;
Waypost's own CPU a delivery is what carries over. After each run store and gateway must agree on every delivery.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from waypost.bench import shapes
from waypost.bench.latency import Latency, latency
from waypost.bench.machine import calibration_us
from waypost.bench.programs import Programs, cpu_s, reached
from waypost.bench.registry import DEVICES_PER_USER
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running, settled

BATCH = 100
SMALL_BATCH = 10
"""Notifications in a batch of the runs that measure latency: in a large batch one waits for the other."""
SHARES = (0.1, 0.5, 0.9)
"""Shares of the peak found; the last is held for as long as is asked, the others for a third of it."""
MIXED_LEAST = 0.95
"""Of the deliveries to all devices so many come at least: some tokens are dead, and found so only once."""
PLAIN, WEB = "2 workers, no Web Push", "2 workers, 10 % Web Push"
CPU = "Waypost's CPU a delivery"
DEARER = "10 % Web Push makes a delivery dearer by"
LARGEST = "memory of the largest process after that"


@dataclass(frozen=True)
class Size:
    """The amount of work in one run."""

    users: int
    """Users in the registry, with 2.5 devices each."""
    warm_up: int
    notifications: int
    sustained_s: float
    rounds: int = 3


@dataclass(frozen=True)
class Burst:
    """The cost of delivering notifications that were all submitted as fast as Waypost took them."""

    count: int
    deliveries: int
    per_s: float
    """Deliveries a second between the first and the last tenth."""
    own_us: float
    """CPU of a delivery, microseconds."""
    gateway_us: float
    load_us: float
    loop_us: float
    """CPU of a turn of the calibration loop, before and after."""

    def rows(self, bench: str, name: str) -> list[Row]:
        """Return the result as rows of the table."""
        against = f"loop {self.loop_us:.1f}; gateway {self.gateway_us:.1f}, load {self.load_us:.1f}"
        return [
            row(bench, f"{name}: deliveries a second", self.per_s, "1/s"),
            row(bench, f"{name}: {CPU}", self.own_us, "µs", against, self.own_us / self.loop_us),
        ]


def run(programs: Programs, size: Size) -> list[Row]:
    """Measure two workers with and without Web Push in turn, then latency and memory at parts of the peak."""
    with running(programs, 2, size.users, web=False) as without, running(programs, 2, size.users) as mix:
        seen: dict[str, list[Burst]] = {PLAIN: [], WEB: []}
        for stack in (without, mix):
            burst(stack, 0, size.warm_up, users=size.users, mixed=True)
        for n in range(size.rounds):
            for name, stack in ((PLAIN, without), (WEB, mix)):
                first = size.warm_up + n * size.notifications
                seen[name].append(burst(stack, first, size.notifications, users=size.users, mixed=True))
        rows = [each for name, bursts in seen.items() for each in median(bursts).rows("end_to_end", name)]
        rows.append(_dearer(seen[PLAIN], seen[WEB]))
        return rows + _sustained(mix, size.warm_up + size.rounds * size.notifications, size)


def median(bursts: Sequence[Burst]) -> Burst:
    """Return the medians of runs of one kind."""
    first, *_ = bursts
    middle = {
        name: statistics.median(getattr(each, name) for each in bursts)
        for name in ("per_s", "own_us", "gateway_us", "load_us", "loop_us")
    }
    return Burst(first.count, first.deliveries, **middle)


def _dearer(plain: Sequence[Burst], web: Sequence[Burst]) -> Row:
    times = statistics.median(b.own_us / a.own_us for a, b in zip(plain, web, strict=True))
    each = ", ".join(f"{100 * (b.own_us / a.own_us - 1):.0f}" for a, b in zip(plain, web, strict=True))
    return row("end_to_end", DEARER, 100 * (times - 1), "%", f"rounds {each}", times)


def burst(
    stack: BenchStack,
    first: int,
    count: int,
    *,
    users: int,
    batch: int = BATCH,
    known: int = 0,
    mixed: bool = False,
) -> Burst:
    """Submit *count* notifications in batches and wait until all are final; the ledger must balance then.

    *first* were submitted before, and *known* were in the store at the start, with two receipts each. With *mixed*
    they are, and were, as callers send them (waypost.bench.shapes): multiples of `BLOCK`.
    """
    loops_us = [calibration_us()]
    own_before, gateway_before = stack.cpu_s(), cpu_s(stack.gateway.pid)
    before = stack.gateway.total("accepted", "dead")
    load = stack.load(batch=batch, users=users, first=first, count=count, **(shapes.wishes() if mixed else {}))
    expected = count * DEVICES_PER_USER
    per_s = steady_rate(stack, before, shapes.distinct(count) * DEVICES_PER_USER * MIXED_LEAST if mixed else expected)
    seen = load.result()
    settled(stack, shapes.distinct(first + count) if mixed else first + count, known)
    own, others = stack.cpu_s() - own_before, cpu_s(stack.gateway.pid) - gateway_before
    deliveries = stack.gateway.total("accepted", "dead") - before
    loops_us.append(calibration_us())
    each_us = 1e6 / deliveries
    return Burst(count, deliveries, per_s, own * each_us, others * each_us, seen["cpu_s"] * each_us, sum(loops_us) / 2)


def steady_rate(stack: BenchStack, before: int, expected: float) -> float:
    """Measure deliveries a second from the first tenth of *expected* to the last, while they happen."""
    points: list[tuple[float, int]] = []
    for share in (0.1, 0.9):
        total = reached(stack.gateway, before + int(expected * share))
        points.append((time.perf_counter(), total))
    (started_at, started), (ended_at, ended) = points
    return (ended - started) / (ended_at - started_at)


def _sustained(stack: BenchStack, first: int, size: Size) -> list[Row]:
    count = shapes.whole(size.notifications / 2)
    peak = burst(stack, first, count, users=size.users, batch=SMALL_BATCH, mixed=True)
    first += count
    peak_per_s = peak.per_s / DEVICES_PER_USER
    rows: list[Row] = []
    for share in SHARES:
        seconds = size.sustained_s if share == SHARES[-1] else size.sustained_s / 3
        before_mib = stack.memory_mib()
        wishes = {"batch": SMALL_BATCH, "users": size.users}
        seen = latency(stack, first, rate=peak_per_s * share, seconds=seconds, mixed=True, **wishes)
        first += seen.submitted
        settled(stack, shapes.distinct(first))
        rows += _latency_rows(seen, share, peak_per_s)
    grown = stack.memory_mib()
    what = f"memory after {size.sustained_s:.0f} s at {SHARES[-1]:.0%} of the peak, both workers"
    rows.append(row("end_to_end", what, grown, "MiB", f"{before_mib:.0f} before", grown / before_mib))
    rows.append(row("end_to_end", LARGEST, stack.largest_mib(), "MiB"))
    return rows


def _latency_rows(seen: Latency, share: float, peak_per_s: float) -> list[Row]:
    what = f"2 workers, {share:.0%} of the peak, {peak_per_s * share:.0f} a second"
    return [
        row("end_to_end", f"{what}: {part} to the gateway", value, "ms")
        for part, value in (("p50", seen.p50_ms), ("p95", seen.p95_ms), ("p99", seen.p99_ms))
    ]
