"""The CPU of a Waypost that has nothing to do."""

from __future__ import annotations

import time

from waypost.bench.end_to_end import burst
from waypost.bench.programs import Programs
from waypost.bench.rows import Row, row
from waypost.bench.stack import running

WORKERS = 2
USERS = 1_000
WARM_UP = 500
REST_S = 10.0
"""Seconds until what a load leaves to be done, such as what the journal's readers read, is over."""
AT_REST = "two workers and their supervisor at rest: CPU, of one core"


def run(programs: Programs, seconds: float) -> list[Row]:
    """Deliver something, so that all of it is in use, wait until nothing goes on, and measure for so long."""
    with running(programs, WORKERS, USERS) as stack:
        burst(stack, 0, WARM_UP, users=USERS, mixed=True)
        time.sleep(REST_S)
        before_s, began_s = stack.cpu_s(), time.perf_counter()
        time.sleep(seconds)
        share = (stack.cpu_s() - before_s) / (time.perf_counter() - began_s)
    return [row("idle", AT_REST, 100 * share, "%")]
