"""Metrics of several workers read as one, whichever of them answers, and after some of them died."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

WORKER = """
import os, sys
from pathlib import Path
import prometheus_client  # whoever imports it first does not matter
from waypost.adapters.prometheus.sink import PrometheusSink
from waypost.telemetry import Metric
sink = PrometheusSink(Path(sys.argv[1]))
sink.count(Metric.ACCEPTED, 3, app="demo", lane="high")
sink.gauge(Metric.IN_FLIGHT, 5, credential="demo/apns")
sink.gauge(Metric.OPEN, 7, lane="high", app="demo")
sink.observe(Metric.COMMIT_SECONDS, 0.004)
sink.observe(Metric.COMMIT_ROWS, 40)
if sys.argv[2] == "renders":
    sys.stdout.buffer.write(sink.render())
    sys.stdout.flush()
os._exit(0)  # as a killed worker ends: nothing is cleaned up
"""

READER = """
import sys
from pathlib import Path
from waypost.adapters.prometheus.sink import PrometheusSink, start_over, worker_died
directory = Path(sys.argv[1])
for command in sys.argv[2:]:
    if command == "start_over":
        start_over(directory)
    else:
        worker_died(directory, int(command))
sys.stdout.buffer.write(PrometheusSink(directory).render())
"""


def worker(directory: Path, how: str = "dies") -> tuple[int, dict[str, float]]:
    """Let a worker count; its process id and what it reads."""
    process = subprocess.Popen([sys.executable, "-c", WORKER, str(directory), how], stdout=subprocess.PIPE)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return process.pid, samples(text)


def read(directory: Path, *commands: str) -> dict[str, float]:
    """What a worker that counted nothing reads, after these commands."""
    done = subprocess.run(
        [sys.executable, "-c", READER, str(directory), *commands], capture_output=True, timeout=60, check=True
    )
    return samples(done.stdout)


def samples(text: bytes) -> dict[str, float]:
    """Values by name and labels."""
    families = text_string_to_metric_families(text.decode())
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


ACCEPTED = "waypost_accepted_total app=demo lane=high"
IN_FLIGHT = "waypost_in_flight credential=demo/apns"


def test_values_are_summed_over_workers_and_outlive_them(tmp_path: Path) -> None:
    """Counters never go back; a dead worker's gauges leave the sum once it is known to be dead."""
    first, _ = worker(tmp_path)
    _, seen = worker(tmp_path, "renders")
    assert (seen[ACCEPTED], seen[IN_FLIGHT]) == (6, 10)
    after = read(tmp_path, str(first))
    assert (after[ACCEPTED], after[IN_FLIGHT]) == (6, 5)
    assert after["waypost_commit_seconds_count"] == 2
    assert (after["waypost_commit_seconds_bucket le=0.0025"], after["waypost_commit_seconds_bucket le=0.005"]) == (0, 2)
    assert after["waypost_commit_operations_bucket le=50.0"] == 2


def test_workers_that_die_leave_their_counts_and_no_files(tmp_path: Path) -> None:
    """A worker that dies at every start must not fill the disk, nor make every reading slower than the last."""
    for _ in range(3):
        pid, _ = worker(tmp_path)
        after = read(tmp_path, str(pid))
        assert not list(tmp_path.glob(f"*_{pid}.db"))
    assert after[ACCEPTED] == 9
    assert IN_FLIGHT not in after
    assert (after["waypost_commit_seconds_count"], after["waypost_commit_operations_bucket le=50.0"]) == (3, 3)


def test_a_new_life_of_the_service_starts_at_zero(tmp_path: Path) -> None:
    """What an earlier life left behind does not grow without end."""
    worker(tmp_path)
    assert ACCEPTED not in read(tmp_path, "start_over")


def test_metrics_without_labels_are_there_before_they_are_counted(tmp_path: Path) -> None:
    """So that a dashboard shows zero, not nothing."""
    assert read(tmp_path)["waypost_stale_settlements_total"] == 0


def test_the_files_hold_real_blocks(tmp_path: Path) -> None:
    """A full disk cannot kill a process that writes into a mapped hole."""
    worker(tmp_path)
    for file in tmp_path.glob("*.db"):
        assert file.stat().st_blocks * 512 >= file.stat().st_size


def test_what_each_worker_tells_of_the_whole_store_is_not_summed(tmp_path: Path) -> None:
    worker(tmp_path)
    _, both = worker(tmp_path, "renders")
    assert both["waypost_open_notifications app=demo lane=high"] == 7
