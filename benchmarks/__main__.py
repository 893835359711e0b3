"""``make bench``: run the benches (``ONLY=kernel,intake`` for some), print their tables, keep results/latest.json."""

from __future__ import annotations

import json
import os
import platform
import sys
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
from benchmarks.programs import MissingProgram, in_rust
from waypost.bench import intake
from waypost.bench.rows import Row

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
        try:
            found = (MAIN | MORE)[name]()
        except MissingProgram as absent:
            missing.append(f"{name} needs {absent}")
            continue
        _print(found)
        rows += found
    machine = {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
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
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row.values()))
    Console(width=150).print(table)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
