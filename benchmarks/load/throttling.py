"""Every provider answers 429 with a Retry-After for a while (S3-129): all is delivered later, nothing is lost."""

from __future__ import annotations

import time

from benchmarks.load.ended import balance
from benchmarks.load.paced import Paced
from benchmarks.load.setup import Setup
from benchmarks.load.watch import Watch
from waypost.bench.end_to_end import SMALL_BATCH
from waypost.bench.latency import CONNECTIONS
from waypost.bench.rows import Row, row
from waypost.bench.stack import running

NAME = "throttling"
RETRY_AFTER_S = 2
SHARE = 5
"""The load is a fifth of the sustained one: what is tried is that all of it waits, not how fast it is worked off."""


def run(setup: Setup) -> list[Row]:
    """A load on time; in its middle third everything is throttled."""
    seconds, per_s = setup.part(6, 60), setup.per_s / SHARE
    with running(setup.programs, setup.workers, setup.users) as stack:
        watch = Watch(stack)
        count = int(per_s * seconds)
        wishes = {"users": setup.users, "batch": SMALL_BATCH, "connections": CONNECTIONS}
        load = Paced(stack, 0, count=count, rate=per_s, **wishes)
        time.sleep(seconds / 3)
        before = stack.gateway.total("throttled")
        stack.gateway.storm(RETRY_AFTER_S)
        time.sleep(seconds / 3)
        stack.gateway.storm(0)
        throttled = stack.gateway.total("throttled") - before
        seen = load.seen(least=count)
        taken = watch.taken()
        return [
            row(NAME, f"requests answered 429 in {seconds / 3:.0f} s, Retry-After {RETRY_AFTER_S} s", throttled, ""),
            *seen.rows(NAME),
            *taken.rows(NAME),
            *balance(stack, NAME, count),
        ]
