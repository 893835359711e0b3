"""1,000 notifications a second for ten minutes, to users with 2.5 devices each (S3-125)."""

from __future__ import annotations

from benchmarks.load.ended import balance
from benchmarks.load.paced import Paced
from benchmarks.load.setup import Setup
from benchmarks.load.watch import Watch
from waypost.bench.end_to_end import SMALL_BATCH
from waypost.bench.latency import CONNECTIONS
from waypost.bench.rows import Row, row
from waypost.bench.stack import running

NAME = "sustained"
WARM_UP = 1_000


def run(setup: Setup) -> list[Row]:
    """In requests of ten; dead and throttled devices are among them."""
    with running(setup.programs, setup.workers, setup.users) as stack:
        warm_up = min(WARM_UP, setup.per_s)
        wishes = {"users": setup.users, "batch": SMALL_BATCH, "connections": CONNECTIONS}
        Paced(stack, 0, count=warm_up, **wishes).seen()
        watch = Watch(stack)
        count = int(setup.per_s * setup.seconds)
        load = Paced(stack, warm_up, count=count, rate=setup.per_s, **wishes)
        seen = load.seen(least=count)
        taken = watch.taken()
        per_s = seen.submitted / seen.seconds
        sent_per_s = seen.submitted / seen.lasted_s
        wanted = f"{setup.per_s:,} wanted"
        return [
            row(NAME, f"accepted a second, for {setup.seconds:.0f} s", per_s, "1/s", wanted, per_s / setup.per_s),
            row(NAME, "sent a second, until the last was", sent_per_s, "1/s", wanted, sent_per_s / setup.per_s),
            row(NAME, "deliveries a second", taken.deliveries / seen.lasted_s, "1/s"),
            *seen.rows(NAME),
            *taken.rows(NAME),
            *balance(stack, NAME, warm_up + count),
        ]
