"""The room on the disk that a process writes to, as metrics."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final

from waypost.telemetry import Metric, Telemetry

LOW_SHARE: Final = 0.15
"""The share of the disk below which what is free is a warning."""
FULL_SHARE: Final = 0.05
"""The share below which somebody is woken."""


def measure_disk(folder: Path, telemetry: Telemetry) -> None:
    """Tell how large the disk of *folder* is, and how much of it is free; nothing while it cannot be asked."""
    with contextlib.suppress(OSError):
        use = shutil.disk_usage(folder)
        telemetry.gauge(Metric.DISK_SIZE, use.total)
        telemetry.gauge(Metric.DISK_FREE, use.free)
