"""The whole path: REST in, SQLite, route, APNs, FCM and Web Push to the bench's gateway, receipts; CPU a delivery.

Everything runs on the same cores: Waypost, gateway and load generator. Deliveries a second are what they did together;
Waypost's own CPU a delivery is what carries over.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks.programs import Load, cpu_s
from benchmarks.registry import DEVICES_PER_USER
from benchmarks.stack import Stack, running, settled

USERS = 20_000
WARM_UP = 2_000
NOTIFICATIONS = 20_000
BATCH = 100
RUNS = ((2, True), (2, False), (1, True))
"""Workers, and whether a tenth of the devices are browsers."""


@dataclass(frozen=True)
class Burst:
    """What it took to deliver notifications that were all submitted as fast as Waypost took them."""

    deliveries: int
    per_s: float
    """Between the first and the last tenth."""
    own_us: float
    """CPU of a delivery."""
    gateway_us: float
    load_us: float
    accepted_per_s: float


def run() -> list[dict[str, object]]:
    """With two workers and with one, with and without Web Push."""
    rows: list[dict[str, object]] = []
    for workers, web in RUNS:
        with running(workers, USERS, web=web) as stack:
            burst(stack, 0, WARM_UP)
            found = burst(stack, WARM_UP, NOTIFICATIONS)
        name = f"{workers} worker(s){'' if web else ', no Web Push'}"
        rows += [
            _row(f"{name}: deliveries a second", found.per_s, "1/s", None, None),
            _row(f"{name}: accepted a second, in batches of {BATCH}", found.accepted_per_s, "1/s", None, None),
            _row(
                f"{name}: Waypost's CPU a delivery",
                found.own_us,
                "µs",
                f"gateway {found.gateway_us:.1f}, load {found.load_us:.1f}",
                found.own_us / found.gateway_us,
            ),
        ]
    return rows


def burst(stack: Stack, first: int, count: int) -> Burst:
    """Submit *count* notifications in batches and wait until all are final; the ledger must balance then."""
    own_before, gateway_before = stack.cpu_s(), cpu_s(stack.gateway.pid)
    before = stack.gateway.total("accepted", "dead")
    load = Load(stack.url, stack.key, batch=BATCH, users=USERS, first=first, count=count)
    per_s = _steady(stack, before, count * DEVICES_PER_USER)
    seen = load.result()
    settled(stack, first + count)
    own, others = stack.cpu_s() - own_before, cpu_s(stack.gateway.pid) - gateway_before
    deliveries = stack.gateway.total("accepted", "dead") - before
    return Burst(
        deliveries,
        per_s,
        own / deliveries * 1e6,
        others / deliveries * 1e6,
        seen["cpu_s"] / deliveries * 1e6,
        count / seen["seconds"],
    )


def _steady(stack: Stack, before: int, expected: float) -> float:
    """Deliveries a second from the first tenth to the last, while they happen."""
    points: list[tuple[float, int]] = []
    for share in (0.1, 0.9):
        while stack.gateway.total("accepted", "dead") < before + expected * share:
            time.sleep(0.02)
        points.append((time.perf_counter(), stack.gateway.total("accepted", "dead")))
    (started_at, started), (ended_at, ended) = points
    return (ended - started) / (ended_at - started_at)


def _row(name: str, value: float, unit: str, against: str | None, ratio: float | None) -> dict[str, Any]:
    rounded = None if ratio is None else round(ratio, 2)
    shown = round(value, 1)
    return {"bench": "end_to_end", "name": name, "value": shown, "unit": unit, "against": against, "ratio": rounded}
