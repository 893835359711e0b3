"""Ten times the silent traffic beside visible notifications (S1-136): how much later they reach the gateway."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import count

from benchmarks.load.ended import balance
from benchmarks.load.paced import Paced, Seen
from benchmarks.load.setup import Setup
from benchmarks.load.watch import Watch
from waypost.bench.latency import CONNECTIONS
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running

NAME = "flood"
VISIBLE_PER_S = 20
VIPS = 500
USUAL_PER_S = 30
"""Silent notifications of a usual day."""
FLOOD = 10
ROUNDS = 3
PARTS = (("median", 0.5), ("p95", 0.95))


def run(setup: Setup) -> list[Row]:
    """Visible ones on time, with the usual silent traffic and with ten times as much in turn; medians of the rounds."""
    seconds = setup.part(4, 20)
    with running(setup.programs, setup.workers, setup.users, vips=VIPS) as stack:
        numbers = count(0, 10**6)
        _visible(stack, next(numbers), seconds).seen()
        watch = Watch(stack)
        runs: dict[int, list[Seen]] = {1: [], FLOOD: []}
        submitted = int(VISIBLE_PER_S * seconds)
        for _ in range(ROUNDS):
            for times, seen in runs.items():
                visible, silent = _together(stack, numbers, times, setup.users, seconds)
                seen.append(visible)
                submitted += visible.submitted + silent.submitted
        taken = watch.taken()
        return [
            *_rows(runs),
            *taken.rows(NAME),
            *balance(stack, NAME, submitted),
        ]


def _together(stack: BenchStack, numbers: Iterator[int], times: int, users: int, seconds: float) -> tuple[Seen, Seen]:
    """Both at once: the silent ones begin before the visible ones, and end after them."""
    rate = USUAL_PER_S * times
    wishes = {"users": users, "connections": CONNECTIONS, "fields": '"kind":"silent"'}
    silent = Paced(stack, next(numbers), count=int(rate * (seconds + 2)), rate=rate, **wishes)
    time.sleep(1)  # it has begun
    visible = _visible(stack, next(numbers), seconds).seen(least=int(VISIBLE_PER_S * seconds))
    return visible, silent.seen(arriving=False)


def _visible(stack: BenchStack, first: int, seconds: float) -> Paced:
    wishes = {"users": VIPS, "prefix": "vip-", "connections": CONNECTIONS}
    return Paced(stack, first, count=int(VISIBLE_PER_S * seconds), rate=VISIBLE_PER_S, **wishes)


def _rows(runs: dict[int, list[Seen]]) -> list[Row]:
    rows = [
        row(NAME, "visible notifications a second", VISIBLE_PER_S, "1/s"),
        row(NAME, "silent ones a second in the flood", USUAL_PER_S * FLOOD, "1/s", f"{USUAL_PER_S} usually", FLOOD),
    ]
    for name, share in PARTS:
        usual, flooded = (
            statistics.median(each.delivered_ms[int(len(each.delivered_ms) * share)] for each in runs[times])
            for times in (1, FLOOD)
        )
        what = f"visible, from due to the gateway, {name}: in the flood"
        rows.append(row(NAME, what, flooded, "ms", f"{usual:.1f} usually, as before wanted", flooded / usual))
    return rows
