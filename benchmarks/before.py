"""A delivery by this code and by that of an earlier commit, in turn: what has been won since.

Each runs its own code from end to end, in processes of its own; gateway, load generator and load are the same.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.end_to_end import USERS
from benchmarks.programs import BUILT, MissingProgram, in_rust
from waypost.bench import shapes
from waypost.bench.rows import Row, row

COMMIT = os.environ.get("BEFORE", "040565b0")
"""The last one before columns (docs/decisions/0090)."""
ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(__file__).parent / "peer_programs" / "earlier.py"
WARM_UP = 2_000
NOTIFICATIONS = int(os.environ.get("NOTIFICATIONS", "10000"))
ROUNDS = 3


def run() -> list[Row]:
    """Rounds in turn; the medians, and the median of the rounds' ratios."""
    with _running(_earlier()) as before, _running(ROOT) as now:
        for each in (before, now):
            _burst(each, 0, WARM_UP)
        firsts = [WARM_UP + n * NOTIFICATIONS for n in range(ROUNDS)]
        pairs = [(_burst(before, first, NOTIFICATIONS), _burst(now, first, NOTIFICATIONS)) for first in firsts]
    return _rows(pairs)


def _rows(pairs: list[tuple[dict[str, float], dict[str, float]]]) -> list[Row]:
    rows = []
    for name, what, unit in (("own_us", "CPU a delivery", "µs"), ("per_s", "deliveries a second", "1/s")):
        then, now = (statistics.median(each[side][name] for each in pairs) for side in (0, 1))
        times = statistics.median(b[name] / a[name] for a, b in pairs)
        against = f"before {then:.0f}"
        rows.append(row("before", f"two workers, no Web Push: {what}, now and before", now, unit, against, times))
    return rows


def _earlier() -> Path:
    """The tree of that commit; MissingProgram where there is none."""
    folder = BUILT / f"before-{COMMIT}"
    if not folder.exists():
        asked = ["git", "-C", str(ROOT), "archive", COMMIT, "src", "benchmarks"]
        packed = subprocess.run(asked, capture_output=True, check=False)
        if packed.returncode != 0:
            raise MissingProgram(f"a clone that has the commit {COMMIT}")
        made = folder.with_suffix(".part")
        made.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "--extract", "--file=-", "--directory", str(made)], input=packed.stdout, check=True)
        made.rename(folder)
    return folder


@contextmanager
def _running(tree: Path) -> Iterator[subprocess.Popen[str]]:
    """Its stack, by a program that measures it on demand."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])},
    )
    programs = in_rust()
    try:
        _asked(process, {"gateway": programs.gateway, "load": programs.load, "users": USERS})
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _burst(process: subprocess.Popen[str], first: int, count: int) -> dict[str, float]:
    wishes = {"first": first, "count": count, "users": USERS, "batch": 100} | shapes.wishes()
    return _asked(process, {"wishes": wishes, "distinct": shapes.distinct(first + count)})


def _asked(process: subprocess.Popen[str], order: dict[str, Any]) -> dict[str, float]:
    assert process.stdin is not None and process.stdout is not None
    print(json.dumps(order), file=process.stdin, flush=True)
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
    answer: dict[str, float] = json.loads(line)
    return answer
