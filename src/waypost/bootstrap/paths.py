"""The files of a service, and its log."""

from __future__ import annotations

from pathlib import Path

from waypost.adapters.jsonlines.sink import JsonLinesSink, TextLinesSink, standard_error
from waypost.config import Config, LogFormat
from waypost.stores.sql.location import run_dir_of_store
from waypost.telemetry import Telemetry


def log_of(config: Config, metrics: Telemetry | None = None, **always: object) -> JsonLinesSink:
    """Open the log: lines on standard error, with *always* in each. *metrics* counts the lines that are lost."""
    stream = standard_error()
    is_text = config.log.format is LogFormat.TEXT or (config.log.format is LogFormat.AUTO and stream.isatty())
    sink, who = (TextLinesSink, {}) if is_text else (JsonLinesSink, {"service": "push-worker"})
    return sink(stream, config.log.level, metrics, **who, **always)


def metrics_dir(config: Config) -> Path:
    """Return the folder where all workers keep their counters."""
    return run_dir_of(config) / "metrics"


def run_dir_of(config: Config) -> Path:
    """Return the folder of locks, counters and worker slots: beside the database, or where the settings say."""
    return run_dir_of_store(config.store)
