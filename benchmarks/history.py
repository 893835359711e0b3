"""Whether a delivery costs the same beside a long history: a store with one and a store with none, in turn."""

from __future__ import annotations

import os
import statistics
from functools import partial

from benchmarks.end_to_end import SIZE, USERS
from benchmarks.growth import NOTIFICATIONS, write_history
from benchmarks.programs import in_rust
from waypost.bench.end_to_end import burst
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running

HISTORY = int(os.environ.get("HISTORY", "2000000"))
"""Finished notifications of a month ago, written straight into the tables."""
ROUNDS = 3


def run() -> list[Row]:
    """Two workers each; the median of the rounds' ratios."""
    with (
        running(in_rust(), 2, USERS) as none,
        running(in_rust(), 2, USERS, history=partial(write_history, count=HISTORY)) as long,
    ):
        for stack, known in ((none, 0), (long, HISTORY)):
            burst(stack, 0, SIZE.warm_up, users=USERS, known=known, mixed=True)
        pairs = [(_own_us(none, n, 0), _own_us(long, n, HISTORY)) for n in range(ROUNDS)]
    alone, beside = (statistics.median(each) for each in zip(*pairs, strict=True))
    times = statistics.median(b / a for a, b in pairs)
    what = f"{HISTORY:,} notifications in the history: CPU a delivery"
    return [row("history", what, beside, "µs", f"none {alone:.0f}", times)]


def _own_us(stack: BenchStack, n: int, known: int) -> float:
    first = SIZE.warm_up + n * NOTIFICATIONS
    return burst(stack, first, NOTIFICATIONS, users=USERS, known=known, mixed=True).own_us
