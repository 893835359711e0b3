"""A second service joins under a load, and takes its share of it (S1-104): nothing is lost or sent twice."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from benchmarks.load.ended import balance
from benchmarks.load.paced import Paced
from benchmarks.load.setup import Setup
from benchmarks.stores import on_postgres
from waypost.bench.end_to_end import SMALL_BATCH
from waypost.bench.latency import CONNECTIONS
from waypost.bench.programs import cpu_s
from waypost.bench.rows import Row, row
from waypost.bench.stack import BenchStack, running
from waypost.runtime.python import MODULE

NAME = "node"
SHARE = 5
"""The load is a fifth of the sustained one."""


def run(setup: Setup) -> list[Row]:
    """On PostgreSQL, a worker each; requests go to the first alone, so that what the second does is delivering."""
    per_s, seconds = setup.per_s / SHARE, setup.part(9, 60)
    with running(setup.programs, 1, setup.users, stands=on_postgres) as stack:
        count = int(per_s * seconds)
        wishes = {"users": setup.users, "batch": SMALL_BATCH, "connections": CONNECTIONS}
        load = Paced(stack, 0, count=count, rate=per_s, **wishes)
        time.sleep(seconds / 3)
        with _joined(stack) as (pid, took_s):
            before = stack.cpu_s(), cpu_s(pid)
            seen = load.seen(least=count)
            first_s, second_s = stack.cpu_s() - before[0], cpu_s(pid) - before[1]
            rows = balance(stack, NAME, count)
        return [
            row(NAME, f"notifications submitted, {per_s:.0f} a second", seen.submitted, ""),
            row(NAME, "the second service is ready after", took_s, "s"),
            row(NAME, "its part of Waypost's CPU from then on", 100 * second_s / (first_s + second_s), "%"),
            *seen.rows(NAME),
            *rows,
        ]


@contextmanager
def _joined(stack: BenchStack) -> Iterator[tuple[int, float]]:
    """Run another service on the same store; its process, and the seconds until it was ready."""
    began = time.perf_counter()
    settings = yaml.safe_load(stack.config.read_text())
    settings["store"]["run_dir"] += "-of-another"  # as on another machine
    config = stack.config.with_name("another.yaml")
    config.write_text(yaml.safe_dump(settings))
    command = [*MODULE, "waypost.cli", "serve", "--config", str(config), "--json"]
    log = stack.config.with_name("another.log")
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise RuntimeError(f"the second service does not start: {log.read_text()[-2000:]}")
        yield process.pid, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
