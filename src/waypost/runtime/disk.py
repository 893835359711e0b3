"""The room on the disk that a process writes to, as metrics."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from waypost.telemetry import Metric, Telemetry


def measure_disk(folder: Path, telemetry: Telemetry) -> None:
    """Tell how large the disk of *folder* is, and how much of it is free; nothing while it cannot be asked."""
    with contextlib.suppress(OSError):
        use = shutil.disk_usage(folder)
        telemetry.gauge(Metric.DISK_SIZE, use.total)
        telemetry.gauge(Metric.DISK_FREE, use.free)
