"""Where a service keeps its files, and how it speaks."""

from __future__ import annotations

import sys
from pathlib import Path

from waypost.adapters.jsonlines.sink import JsonLinesSink
from waypost.adapters.sql.place import run_dir_of_store
from waypost.config import Config


def log_of(config: Config, **always: object) -> JsonLinesSink:
    """The log: JSON lines on standard error; a worker's say which one it is."""
    return JsonLinesSink(sys.stderr.buffer, config.log.level, service="push-worker", **always)


def metrics_dir(config: Config) -> Path:
    """Where all workers keep their counters."""
    return run_dir_of(config) / "metrics"


def run_dir_of(config: Config) -> Path:
    """The folder of locks, counters and the board: beside the database, or where the settings say."""
    return run_dir_of_store(config.store)
