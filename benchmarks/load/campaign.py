"""A campaign to everybody beside single notifications (S3-130): its queue grows, then drains; intake still answers."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks import bulk
from benchmarks.load.ended import balance
from benchmarks.load.paced import Paced, percentiles
from benchmarks.load.setup import Setup
from benchmarks.load.watch import Watch
from waypost.bench.latency import CONNECTIONS
from waypost.bench.registry import DEVICES_PER_USER
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running

NAME = "campaign"
BESIDE_PER_S = 20
VIPS = 500
LOOK_S = 0.2
BURST = 10_000_000
"""The recipients of S1-144, which is to be over in five minutes."""


@dataclass
class Queue:
    """The queue at the moments at which it was looked at."""

    most: int = 0
    last: int = 0
    grew_s: float = 0.0
    """From the beginning until it was longest."""
    took_s: float = 0.0
    """From the beginning until the job had finished."""


def run(setup: Setup) -> list[Row]:
    """One request, to all in the registry."""
    seconds = setup.part(3, 20)
    with running(setup.programs, setup.workers, setup.users, vips=VIPS) as stack:
        before = _beside(stack, 0, int(BESIDE_PER_S * seconds)).seen()
        watch = Watch(stack)
        beside = _beside(stack, before.submitted, int(BESIDE_PER_S * setup.part(10, 30)))
        queue = _drained(stack)
        meanwhile = beside.seen()
        taken = watch.taken()
        per_s = (setup.users * DEVICES_PER_USER + VIPS) / queue.took_s
        answers = (
            ("single notifications before, from due to the answer", before),
            ("single notifications beside it, from due to the answer", meanwhile),
        )
        return [
            row(NAME, "users of one request", setup.users + VIPS, ""),
            row(NAME, "users that wait, most", queue.most, "", f"after {queue.grew_s:.1f} s"),
            row(NAME, "users that wait, at its end", queue.last, "", f"after {queue.took_s:.1f} s"),
            row(NAME, "deliveries a second", per_s, "1/s"),
            row(NAME, f"{BURST:,} deliveries would take", BURST / per_s / 60, "min", "5 wanted", BURST / per_s / 300),
            *(each for what, seen in answers for each in percentiles(NAME, what, seen.answered_ms)),
            *taken.rows(NAME),
            *balance(stack, NAME, before.submitted + meanwhile.submitted + setup.users + VIPS),
        ]


def _beside(stack: BenchStack, first: int, count: int) -> Paced:
    wishes = {"users": VIPS, "prefix": "vip-", "connections": CONNECTIONS}
    return Paced(stack, first, count=count, rate=BESIDE_PER_S, **wishes)


def _drained(stack: BenchStack) -> Queue:
    """Begin the campaign, and watch what waits until its job has finished and nothing does."""
    queue, began = Queue(), time.perf_counter()
    job_id = bulk.begin(stack)
    while True:
        is_over = bulk.state(stack, job_id) == "finished"
        queue.last = bulk.waiting(stack, job_id)
        if queue.last > queue.most:
            queue.most, queue.grew_s = queue.last, time.perf_counter() - began
        queue.took_s = time.perf_counter() - began
        if is_over:
            return queue
        time.sleep(LOOK_S)  # asking without pause would take the CPU that is measured
