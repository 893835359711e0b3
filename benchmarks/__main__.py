"""``make bench``: run the benches of the one table (``ONLY=kernel,intake`` for some), keep results/latest.json."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    before,
    bulk,
    celery,
    drop_in,
    encryption,
    end_to_end,
    groups,
    growth,
    grpc_door,
    history,
    isolation,
    kernel,
    limits,
    live,
    look_ups,
    pages,
    peers,
    receipts,
    recording,
    stacks,
    streams_door,
)
from benchmarks.programs import in_rust
from benchmarks.report import keep, print_rows, print_table, report
from waypost.bench import figures, idle, intake, sustained
from waypost.bench.figures import Ran
from waypost.bench.rows import Row, row

SUSTAINED_USERS = 100_000
SECONDS = float(os.environ.get("SECONDS", "60"))
IDLE_S = 20.0

TABLE: dict[str, tuple[Callable[[], list[Row]], float]] = {
    "before": (before.run, 2.5),
    "sustained": (lambda: sustained.run(in_rust(), sustained.Offer(SUSTAINED_USERS, SECONDS)), 4),
    "end_to_end": (end_to_end.run, 4.5),
    "intake": (lambda: intake.run(in_rust()), 1.5),
    "bulk": (bulk.run, 1.5),
    "streams": (streams_door.run, 2),
    "peers": (lambda: peers.compare(peers.MAIN, (0,)), 1),
    "pushy": (lambda: peers.compare((peers.PUSHY,), (0,)), 1),
    "webpush": (lambda: peers.compare((peers.WEBPUSH_GO,), (0,)), 0.5),
    "groups": (groups.run, 0.5),
    "isolation": (isolation.run, 6),
    "history": (history.run, 5),
    "idle": (lambda: idle.run(in_rust(), IDLE_S), 1),
}
"""The benches that the table is filled from, and about how many minutes each takes on two quiet cores."""
MORE: dict[str, Callable[[], list[Row]]] = {
    "kernel": kernel.run,
    "encryption": encryption.run,
    "limits": limits.run,
    "growth": growth.run,
    "registry": look_ups.run,
    "stacks": stacks.run,
    "recording": recording.run,
    "receipts": receipts.run,
    "live": live.run,
    "grpc": grpc_door.run,
    "more_peers": peers.run_more,
    "celery": celery.run,
    "drop_in": drop_in.run,
    "pages": pages.run,
}
"""Run by name."""


def main() -> int:
    """The exit status: 2 for an unknown bench, 1 where one could not run or failed."""
    only = os.environ.get("ONLY", "")
    chosen = only.split(",") if only else list(TABLE)
    if unknown := sorted(set(chosen) - set(TABLE) - set(MORE)):
        print(f"There is no bench {', '.join(unknown)}; there are {', '.join([*TABLE, *MORE])}.", file=sys.stderr)
        return 2
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent)  # for what a service runs under, such as a profiler
    rows: list[Row] = []
    benches: dict[str, Ran] = {}
    began_s = time.perf_counter()
    for n, name in enumerate(chosen):
        left = sum(TABLE[each][1] for each in chosen[n:] if each in TABLE)
        passed = (time.perf_counter() - began_s) / 60
        _say(f"[{n + 1}/{len(chosen)}] {name}, after {passed:.0f} min, some {left:.0f} min left ...")
        found, benches[name] = _ran(name)
        rows += found
        print_rows(found)
        keep(report(rows, benches))
    made = report(rows, benches)
    print_table(figures.measured_only(made["table"]) if only else made["table"])
    for each in figures.limits_of(rows):
        print(f"What limits it: {each}")
    if not only:
        _say("`python -m benchmarks.page --keep` keeps this run with the page.")
    return 1 if any(each["failed"] for each in benches.values()) else 0


def _ran(name: str) -> tuple[list[Row], Ran]:
    """Run one bench; where it fails, nothing but why."""
    found, seen = figures.ran(name, TABLE[name][0] if name in TABLE else MORE[name])
    _say(f"  {name} {seen['failed'] or ''} took {seen['seconds']:.0f} s; others had {seen['others']:.0%} meanwhile")
    found.append(row(name, "cores that others had meanwhile", 100 * seen["others"], "%"))
    found.append(row(name, "a turn of the calibration loop", seen["loop_us"], "µs CPU"))
    return found, seen


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
