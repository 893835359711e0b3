"""Measures the Waypost that is on its path, of any commit: a line of JSON in, a line out; the first says with what.

It uses of the bench what has been there since before columns. The caller says how many notifications are no duplicates.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from waypost.bench.end_to_end import steady_rate
from waypost.bench.programs import Programs
from waypost.bench.stack import BenchStack, running, until_quiet
from waypost.stores.sql.connection import connect

WORKERS = 2
DEVICES_PER_USER = 2.5
LEAST = 0.95
"""Of the deliveries that all devices would get: some are dead, and not all shapes go to all."""
MONTH_MS = 30 * 86_400_000


def used_before(database: Path) -> None:
    """All devices were used a month ago."""
    connection: Any = connect(database, busy_timeout_s=5)
    connection.execute("UPDATE device SET last_used_at = ?", (int(time.time() * 1000) - MONTH_MS,))
    connection.close()


def burst(stack: BenchStack, wishes: dict[str, Any], distinct: int) -> dict[str, float]:
    """Deliver what is asked for, until all is final; CPU of a delivery, and deliveries a second."""
    own_s, before = stack.cpu_s(), stack.gateway.total("accepted", "dead")
    load = stack.load(**wishes)
    per_s = steady_rate(stack, before, wishes["count"] * DEVICES_PER_USER * LEAST)
    load.result()
    accepted = until_quiet(stack, distinct).accepted
    assert accepted == distinct, (accepted, distinct)
    deliveries = stack.gateway.total("accepted", "dead") - before
    return {"own_us": (stack.cpu_s() - own_s) / deliveries * 1e6, "per_s": per_s}


def main() -> None:
    """Serve until nothing more is asked."""
    asked = json.loads(sys.stdin.readline())
    programs = Programs("in Rust", tuple(asked["gateway"]), tuple(asked["load"]))
    with running(programs, WORKERS, asked["users"], web=False, history=used_before) as stack:
        print("{}", flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            print(json.dumps(burst(stack, order["wishes"], order["distinct"])), flush=True)


if __name__ == "__main__":
    main()
