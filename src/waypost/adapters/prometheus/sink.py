"""The metrics sink: prometheus_client's multiprocess mode, one mapped file a kind and worker."""

from __future__ import annotations

import fcntl
import os
from bisect import bisect_left
from collections import Counter as Counted
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from waypost.telemetry import Metric, MetricKind, Silent

FILE_BYTES = 512 * 1024
"""Room for some 4,000 series of one kind; beyond it prometheus_client doubles the file."""

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)

_COUNTED_KINDS = ("counter", "histogram")
_FILE_KINDS = (*_COUNTED_KINDS, "gauge_livesum", "gauge_livemax")
_DEAD = "dead"
"""The name in place of a process id for the counters of all workers that died, so that restarts do not add files."""

_Series = Counter | Gauge | Histogram


def start_over(directory: Path) -> None:
    """Make *directory* an empty one: called once when a service starts, before its workers."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in directory.glob("*.db"):
        file.unlink()


def worker_died(directory: Path, pid: int) -> None:
    """Take a dead worker's gauges out of the sums; its counters go to those of all dead, so that none goes back."""
    mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call] # it has no types
    with suppress(OSError), _locked(directory, fcntl.LOCK_EX):  # with no room for that its files stay as they are
        for kind in _COUNTED_KINDS:
            _inherit(directory / f"{kind}_{pid}.db", directory / f"{kind}_{_DEAD}.db")


class PrometheusSink(Silent):
    """A sink of this process's metrics, where every worker of the machine can read them; it ignores events."""

    def __init__(self, directory: Path) -> None:
        """Use *directory*, the same for all workers of a store; an OSError if it has no room."""
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        _reserve(directory)
        # The library finds the directory in the environment, and the kind of its values in a variable set at import.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
        values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call] # it has no types
        registry = CollectorRegistry()
        self._metrics = {metric: _declared(metric, registry) for metric in Metric}
        self._series: dict[tuple[object, ...], _Series] = {}

    def count(self, metric: Metric, n: float = 1, /, **labels: str) -> None:
        """Add *n* to a counter."""
        series = cast("Counter", self._labelled(metric, labels))  # to ask for its class is Python code, each time
        series._value.inc(n)

    def gauge(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Set this worker's part of a gauge; what is read is the sum over the living workers, or the largest."""
        series = self._labelled(metric, labels)
        assert isinstance(series, Gauge)
        series.set(value)

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Record one value of a histogram."""
        series = self._labelled(metric, labels)
        assert isinstance(series, Histogram)
        series._sum.inc(value)
        series._buckets[bisect_left(series._upper_bounds, value)].inc(1)

    def observe_all(self, metric: Metric, values: Sequence[float], /, **labels: str) -> None:
        """Record many values of a histogram at once: each of its numbers is written once for all of them."""
        series = cast("Histogram", self._labelled(metric, labels))
        bounds = buckets_of(metric)
        series._sum.inc(sum(values))
        for bucket, n in Counted(bisect_left(bounds, value) for value in values).items():
            series._buckets[bucket].inc(n)

    def render(self) -> bytes:
        """Render all workers' values in the Prometheus text format; reads files."""
        registry = CollectorRegistry()
        directory = str(self._directory)
        MultiProcessCollector(registry, path=directory)  # type: ignore[no-untyped-call] # it has no types
        with _locked(self._directory, fcntl.LOCK_SH):
            return generate_latest(registry)

    def _labelled(self, metric: Metric, labels: dict[str, str]) -> _Series:
        key = (metric.label, *labels.items())  # an enum's own hash is Python code
        series = self._series.get(key)
        if series is None:
            declared = self._metrics[metric]
            series = self._series[key] = declared.labels(**labels) if labels else declared
        return series


def _declared(metric: Metric, registry: CollectorRegistry) -> _Series:
    match metric.kind:
        case MetricKind.COUNTER:
            return Counter(metric.label, metric.meaning, metric.labels, registry=registry)
        case MetricKind.GAUGE:
            return Gauge(metric.label, metric.meaning, metric.labels, registry=registry, multiprocess_mode="livesum")
        case MetricKind.MAXIMUM:
            return Gauge(metric.label, metric.meaning, metric.labels, registry=registry, multiprocess_mode="livemax")
        case MetricKind.HISTOGRAM:
            return Histogram(metric.label, metric.meaning, metric.labels, registry=registry, buckets=buckets_of(metric))


def buckets_of(metric: Metric) -> Sequence[float]:
    """Return the upper bounds of a histogram's buckets; beyond the last one there is one more."""
    return SECONDS if metric.label.endswith("_seconds") else COUNTS


def _reserve(directory: Path) -> None:
    """Give the files real blocks: a write into a hole of a mapped file kills the process when the disk is full."""
    for kind in _FILE_KINDS:
        _allocate(directory / f"{kind}_{os.getpid()}.db")


def _allocate(path: Path) -> None:
    with path.open("ab") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, FILE_BYTES)


def _inherit(left: Path, heir: Path) -> None:
    """Add the values in *left* to those in *heir*, and delete it."""
    if not left.exists():
        return
    _allocate(heir)
    total = MmapedDict(str(heir))  # type: ignore[no-untyped-call] # it has no types
    try:
        for key, value, stamp, _ in MmapedDict.read_all_values_from_file(str(left)):  # type: ignore[no-untyped-call] # same
            total.write_value(key, total.read_value(key)[0] + value, stamp)  # type: ignore[no-untyped-call] # same
    finally:
        total.close()  # type: ignore[no-untyped-call] # same
    left.unlink()


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    """Keep a dead worker's values from being read twice, or not at all, while they move."""
    with (directory / "moving.lock").open("ab") as lock:
        fcntl.flock(lock.fileno(), how)
        yield
