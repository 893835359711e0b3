"""The whole path: REST in, SQLite, route, APNs, FCM and Web Push to the bench's gateway, receipts; CPU a delivery.

Everything runs on the same cores: Waypost, gateway and load generator. Deliveries a second are what they did together;
Waypost's own CPU a delivery is what carries over. After each run store and gateway must agree on every delivery.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from waypost.bench.latency import Latency, latency
from waypost.bench.programs import Programs, cpu_s, reached
from waypost.bench.registry import DEVICES_PER_USER
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running, settled

BATCH = 100
SMALL_BATCH = 10
"""Notifications in a batch of the runs that measure latency: in a large batch one waits for the other."""
SHARES = (0.1, 0.5, 0.9)
"""Shares of the peak found; the last is held for as long as is asked, the others for a third of it."""


@dataclass(frozen=True)
class Size:
    """The amount of work in one run."""

    users: int
    """Users in the registry, with 2.5 devices each."""
    warm_up: int
    notifications: int
    sustained_s: float


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

    def rows(self, bench: str, name: str) -> list[Row]:
        """Return the result as rows of the table."""
        against = f"gateway {self.gateway_us:.1f}, load {self.load_us:.1f}"
        return [
            row(bench, f"{name}: deliveries a second", self.per_s, "1/s"),
            row(bench, f"{name}: Waypost's CPU a delivery", self.own_us, "µs", against, self.own_us / self.gateway_us),
        ]


def run(programs: Programs, size: Size) -> list[Row]:
    """Measure with two workers, then latency and memory at parts of the peak."""
    with running(programs, 2, size.users) as stack:
        burst(stack, 0, size.warm_up, users=size.users)
        seen = burst(stack, size.warm_up, size.notifications, users=size.users)
        rows = seen.rows("end_to_end", f"2 workers, gateway {programs.name}")
        return rows + _sustained(stack, size.warm_up + size.notifications, size)


def burst(stack: BenchStack, first: int, count: int, *, users: int, batch: int = BATCH, known: int = 0) -> Burst:
    """Submit *count* notifications in batches and wait until all are final; the ledger must balance then.

    *first* were submitted before, and *known* were in the store at the start, with two receipts each.
    """
    own_before, gateway_before = stack.cpu_s(), cpu_s(stack.gateway.pid)
    before = stack.gateway.total("accepted", "dead")
    load = stack.load(batch=batch, users=users, first=first, count=count)
    per_s = steady_rate(stack, before, count * DEVICES_PER_USER)
    seen = load.result()
    settled(stack, first + count, known)
    own, others = stack.cpu_s() - own_before, cpu_s(stack.gateway.pid) - gateway_before
    deliveries = stack.gateway.total("accepted", "dead") - before
    each_us = 1e6 / deliveries
    return Burst(count, deliveries, per_s, own * each_us, others * each_us, seen["cpu_s"] * each_us)


def steady_rate(stack: BenchStack, before: int, expected: float) -> float:
    """Measure deliveries a second from the first tenth of *expected* to the last, while they happen."""
    points: list[tuple[float, int]] = []
    for share in (0.1, 0.9):
        total = reached(stack.gateway, before + int(expected * share))
        points.append((time.perf_counter(), total))
    (started_at, started), (ended_at, ended) = points
    return (ended - started) / (ended_at - started_at)


def _sustained(stack: BenchStack, first: int, size: Size) -> list[Row]:
    peak = burst(stack, first, size.notifications // 2, users=size.users, batch=SMALL_BATCH)
    first += peak.count
    peak_per_s = peak.per_s / DEVICES_PER_USER
    rows: list[Row] = []
    for share in SHARES:
        seconds = size.sustained_s if share == SHARES[-1] else size.sustained_s / 3
        before_mib = stack.memory_mib()
        seen = latency(stack, first, rate=peak_per_s * share, seconds=seconds, batch=SMALL_BATCH, users=size.users)
        first += seen.submitted
        settled(stack, first)
        rows += _latency_rows(seen, share, peak_per_s)
    grown = stack.memory_mib()
    what = f"memory after {size.sustained_s:.0f} s at {SHARES[-1]:.0%} of the peak, both workers"
    rows.append(row("end_to_end", what, grown, "MiB", f"{before_mib:.0f} before", grown / before_mib))
    return rows


def _latency_rows(seen: Latency, share: float, peak_per_s: float) -> list[Row]:
    what = f"2 workers, {share:.0%} of the peak, {peak_per_s * share:.0f} a second"
    return [
        row("end_to_end", f"{what}: {part} to the gateway", value, "ms")
        for part, value in (("p50", seen.p50_ms), ("p95", seen.p95_ms), ("p99", seen.p99_ms))
    ]
