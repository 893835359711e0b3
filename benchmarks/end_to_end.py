"""The whole path as ``waypost bench`` measures it, and where the CPU of a delivery goes."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

from benchmarks import stages
from benchmarks.programs import in_rust
from waypost.bench import end_to_end
from waypost.bench.end_to_end import Size
from waypost.bench.rows import Row, row
from waypost.bench.stack import running

USERS = int(os.environ.get("USERS", "20000"))
SIZE = Size(USERS, warm_up=2_000, notifications=10_000, sustained_s=float(os.environ.get("SECONDS", "60")))
PICTURE = Path(__file__).parent / "results" / "stages.svg"

burst = partial(end_to_end.burst, users=USERS, mixed=True)


def run() -> list[Row]:
    """With two workers, with and without Web Push in turn; latency and memory at parts of the peak; then the stages."""
    return end_to_end.run(in_rust(), SIZE) + _one_worker()


def _one_worker() -> list[Row]:
    """The CPU of a delivery by stage, from a second run under the profiler."""
    profile = PICTURE.with_name("profile.json")
    profile.parent.mkdir(exist_ok=True)
    profile.unlink(missing_ok=True)
    with running(in_rust(), 1, USERS, command=("benchmarks.profiled", str(profile))) as stack:
        burst(stack, 0, SIZE.warm_up)
        plain = burst(stack, SIZE.warm_up, SIZE.notifications)
        os.kill(stack.pid, signal.SIGUSR1)
        profiled = burst(stack, SIZE.warm_up + SIZE.notifications, SIZE.notifications)
        os.kill(stack.pid, signal.SIGUSR1)
        while not profile.exists():
            time.sleep(0.05)
    each_us = 1e6 / profiled.deliveries
    shares = [(name, spent * each_us) for name, spent in stages.by_stage(json.loads(profile.read_text()))]
    whole_us = sum(spent for _, spent in shares)
    title = f"CPU of a delivery by stage: {whole_us:.0f} µs with one worker under the profiler"
    stages.draw(PICTURE, title, shares, "µs")
    return plain.rows("end_to_end", "1 worker") + [
        row("end_to_end", f"1 worker, {name}", us, "µs", f"of {whole_us:.0f} sampled", us / whole_us)
        for name, us in shares
    ]
