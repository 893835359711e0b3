"""``make bench``: run the benches (``ONLY=kernel,intake`` for some), print their tables, keep results/latest.json."""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    bulk,
    celery,
    drop_in,
    encryption,
    end_to_end,
    groups,
    growth,
    grpc_door,
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
from benchmarks.load.watch import CORES, busy_s
from benchmarks.programs import MissingProgram, in_rust
from waypost.bench import intake
from waypost.bench.rows import Row, row

MAIN: dict[str, Callable[[], list[Row]]] = {
    "kernel": kernel.run,
    "encryption": encryption.run,
    "groups": groups.run,
    "intake": lambda: intake.run(in_rust()),
    "limits": limits.run,
    "end_to_end": end_to_end.run,
    "bulk": bulk.run,
    "growth": growth.run,
    "isolation": isolation.run,
    "registry": look_ups.run,
    "stacks": stacks.run,
    "streams": streams_door.run,
    "recording": recording.run,
    "receipts": receipts.run,
    "live": live.run,
    "grpc": grpc_door.run,
    "peers": peers.run,
}
MORE: dict[str, Callable[[], list[Row]]] = {
    "more_peers": peers.run_more,
    "celery": celery.run,
    "drop_in": drop_in.run,
    "pages": pages.run,
}
"""Run by name: what takes long, and what needs more than the rest."""
RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """The exit status: 2 for an unknown bench, 1 where one could not run."""
    only = os.environ.get("ONLY", "")
    chosen = only.split(",") if only else list(MAIN)
    unknown = sorted(set(chosen) - set(MAIN | MORE))
    if unknown:
        print(f"There is no bench {', '.join(unknown)}; there are {', '.join(MAIN | MORE)}.", file=sys.stderr)
        return 2
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent)  # for what a service runs under, such as a profiler
    rows: list[Row] = []
    missing: list[str] = []
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        began_s, busy_before_s, ours_before_s = time.perf_counter(), busy_s(), _ours_s()
        try:
            found = (MAIN | MORE)[name]()
        except MissingProgram as absent:
            missing.append(f"{name} needs {absent}")
            continue
        others_s = busy_s() - busy_before_s - (_ours_s() - ours_before_s)
        share = max(0.0, others_s) / (time.perf_counter() - began_s) / CORES
        found.append(row(name, "cores that others had meanwhile", 100 * share, "%"))
        _print(found)
        rows += found
    machine = {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "is_optimized": _is_optimized(),
        "kernel": platform.release(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    taken = datetime.now(UTC).isoformat(timespec="seconds")
    RESULTS.write_text(json.dumps({"taken": taken, "machine": machine, "results": rows}, indent=1) + "\n")
    for what in missing:
        print(f"{what}, which is not installed here", file=sys.stderr)
    return 1 if missing else 0


def _print(rows: list[Row]) -> None:
    table = Table("bench", "what", "value", "unit", "against", "ratio")
    for each in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in each.values()))
    Console(width=150).print(table)


def _ours_s() -> float:
    """CPU seconds so far of this process and of all that it started and has seen end."""
    return sum(os.times()[:4])


def _is_optimized() -> bool:
    """Whether the interpreter was built by profile (PGO): without, it is 1.3 times slower."""
    return "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
