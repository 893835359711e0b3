"""The cost of accepting: durable, answered 202. All is for tomorrow, so nothing is sent meanwhile."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta
from typing import Any

from waypost.bench.programs import Programs
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running

WORKERS = 2
ROUNDS = 3
USERS = 100_000
SHAPES = ((1, 128, 4_000), (100, 8, 10_000), (1_000, 4, 10_000))
"""Notifications in one request, requests at once, notifications of a round."""
WAYS = {
    "with dedup": '"dedup_window":86400,',
    "by a key": '"idempotency_key":"order-{n}",',
    "by both": '"idempotency_key":"order-{n}","dedup_window":86400,',
    "without": "",
}
"""The ways of dedup: by content, by an idempotency key, by both, and not at all."""


def run(programs: Programs) -> list[Row]:
    """Measure each way of dedup in rounds, in turn; return the medians."""
    rows: list[Row] = []
    first = 0
    with running(programs, WORKERS, 0) as stack:
        for batch, connections, count in SHAPES:
            seen: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for _ in range(ROUNDS):
                for way, fields in WAYS.items():
                    seen[way].append(_measured(stack, fields, batch, connections, first, count))
                    first += count
            rows += _rows(batch, connections, seen)
    return rows


def accepted(batch: int) -> str:
    """Return the name of the row that says how many are accepted a second in batches of so many."""
    return f"{_name(batch)}: accepted a second"


def _name(batch: int) -> str:
    return "single POSTs" if batch == 1 else f"batches of {batch:,}"


def _measured(stack: BenchStack, fields: str, batch: int, connections: int, first: int, count: int) -> dict[str, float]:
    before_s = stack.cpu_s()
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    fields += f'"scheduled_at":"{tomorrow}"'
    wishes: dict[str, Any] = {"batch": batch, "connections": connections, "first": first, "count": count}
    seen = stack.load(fields=fields, users=USERS, **wishes).result()
    return {name: seen[name] for name in ("p50_ms", "p95_ms", "p99_ms")} | {
        "per_s": count / seen["seconds"],
        "own_us": (stack.cpu_s() - before_s) / count * 1e6,
    }


def _rows(batch: int, connections: int, seen: dict[str, list[dict[str, float]]]) -> list[Row]:
    rows = []
    medians = {
        way: {name: statistics.median(each[name] for each in runs) for name in runs[0]} for way, runs in seen.items()
    }
    with_dedup, without = medians["with dedup"], medians["without"]
    name = _name(batch)
    for way in ("with dedup", "by a key", "by both"):
        what = f"{name}: Waypost's CPU a notification" + ("" if way == "with dedup" else f", dedup {way}")
        value, against = medians[way]["own_us"], without["own_us"]
        rows.append(row("intake", what, value, "µs", f"without dedup {against:.1f}", value / against))
    rows.append(row("intake", accepted(batch), with_dedup["per_s"], "1/s"))
    for part in ("p50", "p95", "p99"):
        value, against = with_dedup[f"{part}_ms"], without[f"{part}_ms"]
        what = f"{name}, {connections} at once: {part} of an answer"
        rows.append(row("intake", what, value, "ms", f"without dedup {against:.1f}", value / against))
    return rows
