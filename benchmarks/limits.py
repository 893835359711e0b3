"""What it costs a request to be limited and known by its content, beside none of it in the same run."""

from __future__ import annotations

import os
import statistics
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.programs import in_rust
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.bench.stores import Base, embedded

NOTIFICATIONS = int(os.environ.get("NOTIFICATIONS", "2000"))
WORKERS = 2
ROUNDS = 5
AT_ONCE = 32
OFF: dict[str, Any] = {"limits": {"caller": "unlimited", "failures": "unlimited"}}
BOUND_US = 15.0
"""What all of it may cost."""


def run() -> list[Row]:
    """Rounds in turn; the medians of CPU, and of the differences between the two of a round."""
    with ExitStack() as exits:
        every = exits.enter_context(running(in_rust(), WORKERS, 0))
        none = exits.enter_context(running(in_rust(), WORKERS, 0, stands=_without_limits))
        ways = {
            "limits and dedup": (every, ""),
            "limits": (every, '"dedup_window":0,'),
            "neither": (none, '"dedup_window":0,'),
        }
        seen: dict[str, list[float]] = {way: [] for way in ways}
        for n in range(ROUNDS + 1):
            for way, (stack, fields) in ways.items():
                cpu_us = _cpu_us(stack, fields, n * NOTIFICATIONS * len(ways))
                if n:  # the first warms up
                    seen[way].append(cpu_us)
    neither = statistics.median(seen["neither"])
    rows = [row("limits", "with neither: Waypost's CPU a request", neither, "µs")]
    for way in ("limits", "limits and dedup"):
        more = [a - b for a, b in zip(seen[way], seen["neither"], strict=True)]
        each = f"under {BOUND_US:g} wanted; rounds {', '.join(f'{one:.0f}' for one in more)}"
        rows.append(row("limits", f"with {way}: more than that", statistics.median(more), "µs", each))
    return rows


def _cpu_us(stack: BenchStack, fields: str, first: int) -> float:
    """CPU of one request of so many; all are for tomorrow, so that nothing is sent beside it."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    fields += f'"scheduled_at":"{tomorrow}"'
    before_s = stack.cpu_s()
    stack.load(fields=fields, batch=1, connections=AT_ONCE, first=first, count=NOTIFICATIONS).result()
    return (stack.cpu_s() - before_s) / NOTIFICATIONS * 1e6


def _without_limits(folder: Path, exits: ExitStack) -> Base:
    base = embedded(folder, exits)
    return replace(base, settings=base.settings | OFF)
