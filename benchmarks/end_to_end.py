"""The whole path: REST in, SQLite, route, APNs, FCM and Web Push to the bench's gateway, receipts; CPU a delivery.

Everything runs on the same cores: Waypost, gateway and load generator. Deliveries a second are what they did together;
Waypost's own CPU a delivery is what carries over. After each run store and gateway must agree on every delivery.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import stages
from benchmarks.latency import Latency, latency
from benchmarks.programs import Load, cpu_s, reached
from benchmarks.registry import DEVICES_PER_USER
from benchmarks.rows import Row, row
from benchmarks.stack import Stack, running, settled

USERS = 20_000
WARM_UP = 2_000
NOTIFICATIONS = 10_000
BATCH = 100
SMALL_BATCH = 10
"""Of the runs that measure latency: in a large batch one waits for the other."""
SUSTAINED_S = float(os.environ.get("SECONDS", "15"))
SHARES = (0.1, 0.5, 0.9)
"""Of the peak found; the last is held for SUSTAINED_S, the others for a third of it."""
PICTURE = Path(__file__).parent / "results" / "stages.svg"


@dataclass(frozen=True)
class Burst:
    """What it took to deliver notifications that were all submitted as fast as Waypost took them."""

    count: int
    deliveries: int
    per_s: float
    """Between the first and the last tenth."""
    own_us: float
    """CPU of a delivery."""
    gateway_us: float
    load_us: float

    def rows(self, bench: str, name: str) -> list[Row]:
        """As figures."""
        against = f"gateway {self.gateway_us:.1f}, load {self.load_us:.1f}"
        return [
            row(bench, f"{name}: deliveries a second", self.per_s, "1/s"),
            row(bench, f"{name}: Waypost's CPU a delivery", self.own_us, "µs", against, self.own_us / self.gateway_us),
        ]


def run() -> list[Row]:
    """With two workers and with one, with and without Web Push; latency and memory at parts of the peak; stages."""
    with running(2, USERS) as stack:
        burst(stack, 0, WARM_UP)
        rows = burst(stack, WARM_UP, NOTIFICATIONS).rows("end_to_end", "2 workers")
        rows += _sustained(stack, WARM_UP + NOTIFICATIONS)
    with running(2, USERS, web=False) as stack:
        burst(stack, 0, WARM_UP)
        rows += burst(stack, WARM_UP, NOTIFICATIONS).rows("end_to_end", "2 workers, no Web Push")
    return rows + _one_worker()


def burst(stack: Stack, first: int, count: int, *, batch: int = BATCH, users: int = USERS, known: int = 0) -> Burst:
    """Submit *count* notifications in batches and wait until all are final; the ledger must balance then.

    *first* were submitted before, and *known* were in the store at the start, with two receipts each.
    """
    own_before, gateway_before = stack.cpu_s(), cpu_s(stack.gateway.pid)
    before = stack.gateway.total("accepted", "dead")
    load = Load(stack.url, stack.key, batch=batch, users=users, first=first, count=count)
    per_s = steady_rate(stack, before, count * DEVICES_PER_USER)
    seen = load.result()
    settled(stack, first + count, known)
    own, others = stack.cpu_s() - own_before, cpu_s(stack.gateway.pid) - gateway_before
    deliveries = stack.gateway.total("accepted", "dead") - before
    each_us = 1e6 / deliveries
    return Burst(count, deliveries, per_s, own * each_us, others * each_us, seen["cpu_s"] * each_us)


def steady_rate(stack: Stack, before: int, expected: float) -> float:
    """Deliveries a second from the first tenth of *expected* to the last, while they happen."""
    points: list[tuple[float, int]] = []
    for share in (0.1, 0.9):
        total = reached(stack.gateway, before + int(expected * share))
        points.append((time.perf_counter(), total))
    (started_at, started), (ended_at, ended) = points
    return (ended - started) / (ended_at - started_at)


def _sustained(stack: Stack, first: int) -> list[Row]:
    peak = burst(stack, first, NOTIFICATIONS // 2, batch=SMALL_BATCH)
    first += peak.count
    peak_per_s = peak.per_s / DEVICES_PER_USER
    rows: list[Row] = []
    for share in SHARES:
        seconds = SUSTAINED_S if share == SHARES[-1] else SUSTAINED_S / 3
        before_mib = stack.memory_mib()
        seen = latency(stack, first, rate=peak_per_s * share, seconds=seconds, batch=SMALL_BATCH, users=USERS)
        first += seen.submitted
        settled(stack, first)
        rows += _latency_rows(seen, share, peak_per_s)
    grown = stack.memory_mib()
    what = f"memory after {SUSTAINED_S:.0f} s at {SHARES[-1]:.0%} of the peak, both workers"
    rows.append(row("end_to_end", what, grown, "MiB", f"{before_mib:.0f} before", grown / before_mib))
    return rows


def _latency_rows(seen: Latency, share: float, peak_per_s: float) -> list[Row]:
    what = f"2 workers, {share:.0%} of the peak, {peak_per_s * share:.0f} a second"
    return [
        row("end_to_end", f"{what}: {part} to the gateway", value, "ms")
        for part, value in (("p50", seen.p50_ms), ("p95", seen.p95_ms), ("p99", seen.p99_ms))
    ]


def _one_worker() -> list[Row]:
    """The CPU of a delivery by stage, from a second run under the profiler."""
    profile = PICTURE.with_name("profile.json")
    profile.parent.mkdir(exist_ok=True)
    profile.unlink(missing_ok=True)
    with running(1, USERS, profile=profile) as stack:
        burst(stack, 0, WARM_UP)
        plain = burst(stack, WARM_UP, NOTIFICATIONS)
        os.kill(stack.pid, signal.SIGUSR1)
        profiled = burst(stack, WARM_UP + NOTIFICATIONS, NOTIFICATIONS)
        os.kill(stack.pid, signal.SIGUSR1)
        while not profile.exists():
            time.sleep(0.05)
    each_us = 1e6 / profiled.deliveries
    shares = [(name, spent * each_us) for name, spent in stages.by_stage(json.loads(profile.read_text()))]
    whole_us = sum(spent for _, spent in shares)
    title = f"CPU of a delivery by stage: {whole_us:.0f} µs with one worker under the profiler"
    stages.draw(PICTURE, title, shares, "µs")
    return plain.rows("end_to_end", "1 worker") + [
        row("end_to_end", f"1 worker, {name}", us, "µs", f"of {whole_us:.0f} sampled", us / whole_us)
        for name, us in shares
    ]
