"""Figures out of the metrics of all workers: sums, rates between two moments, and quantiles. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from waypost.telemetry import Metric

Labels = tuple[tuple[str, str], ...]
_LINE: Final = re.compile(r"([a-z_0-9]+)(?:\{(.*)\})? ([^ ]+)")
_LABEL: Final = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
_WINDOW_S: Final = 60.0
_LEAST_S: Final = 2.0
_KEPT: Final = 180
"""The samples that are kept: as many as a graph shows."""


class Sample(Struct, frozen=True):
    """The values of all metrics at a moment."""

    at_s: float
    values: Mapping[tuple[str, Labels], float]

    def rows(self, metric: Metric, suffix: str = "", **wanted: str) -> Iterable[tuple[dict[str, str], float]]:
        """Yield each value of a metric whose labels are as wanted, with its labels."""
        name = metric.value[0] + suffix
        for (of, labels), value in self.values.items():
            if of == name:
                each = dict(labels)
                if all(each.get(label) == text for label, text in wanted.items()):
                    yield each, value

    def total(self, metric: Metric, **wanted: str) -> float:
        """Add up the values of a metric whose labels are as wanted."""
        return sum(value for _, value in self.rows(metric, **wanted))

    def by(self, metric: Metric, label: str, **wanted: str) -> dict[str, float]:
        """Add up the values of a metric by one of its labels."""
        sums: defaultdict[str, float] = defaultdict(float)
        for labels, value in self.rows(metric, **wanted):
            sums[labels.get(label, "")] += value
        return dict(sums)

    def buckets(self, metric: Metric, **wanted: str) -> dict[float, float]:
        """Add up the buckets of a histogram: how many were at most so many seconds."""
        sums: defaultdict[float, float] = defaultdict(float)
        for labels, value in self.rows(metric, "_bucket", **wanted):
            sums[float(labels["le"])] += value
        return dict(sums)


def parse(text: str, at_s: float) -> Sample:
    """Read the Prometheus text format."""
    values: dict[tuple[str, Labels], float] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is not None:
            name, labels, value = found.groups()
            values[name, tuple(_LABEL.findall(labels or ""))] = float(value)
    return Sample(at_s, values)


class Samples:
    """The samples that a process took while somebody looked."""

    def __init__(self) -> None:
        self._kept: deque[Sample] = deque(maxlen=_KEPT)

    def add(self, sample: Sample) -> None:
        """Keep a sample, in place of one that is as good as the same."""
        if self._kept and sample.at_s - self._kept[-1].at_s < 1.0:
            self._kept.pop()
        self._kept.append(sample)

    @property
    def now(self) -> Sample:
        """The newest sample."""
        return self._kept[-1]

    @property
    def before(self) -> Sample | None:
        """The sample of a minute ago, or the oldest since; None where there is none to compare with."""
        since = self.now.at_s - _WINDOW_S
        kept = [each for each in self._kept if since <= each.at_s <= self.now.at_s - _LEAST_S]
        return kept[0] if kept else None

    def rate(self, metric: Metric, **wanted: str) -> float | None:
        """Return how much a counter grew in a second; None where nothing can be compared."""
        before = self.before
        return None if before is None else growth(before, self.now, metric, **wanted)

    def quantile(self, part: float, metric: Metric, **wanted: str) -> float | None:
        """Return the quantile of a histogram in the last minute, or of all times where nothing came in it."""
        now = self.now.buckets(metric, **wanted)
        before = {} if self.before is None else self.before.buckets(metric, **wanted)
        lately = {bound: count - before.get(bound, 0) for bound, count in now.items()}
        return quantile(lately, part) if max(lately.values(), default=0) > 0 else quantile(now, part)

    def series(self, metric: Metric, **wanted: str) -> list[tuple[float, float]]:
        """Return the rate of a counter between each two samples, with the time of the later."""
        kept = list(self._kept)
        return [(after.at_s, growth(before, after, metric, **wanted)) for before, after in pairwise(kept)]


def growth(before: Sample, after: Sample, metric: Metric, **wanted: str) -> float:
    """Return how much a counter grew in a second between two samples; a restart makes it 0, not less."""
    grown = after.total(metric, **wanted) - before.total(metric, **wanted)
    return max(0.0, grown) / max(after.at_s - before.at_s, 1e-9)


def quantile(buckets: Mapping[float, float], part: float) -> float | None:
    """Estimate a quantile from cumulative buckets, linear within one; None where there is nothing."""
    bounds: Sequence[float] = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        return None
    rank = part * buckets[bounds[-1]]
    n = bisect_left([buckets[bound] for bound in bounds], rank)
    if bounds[n] == float("inf"):
        return bounds[n - 1] if n else None
    low, below = (bounds[n - 1], buckets[bounds[n - 1]]) if n else (0.0, 0.0)
    inside = buckets[bounds[n]] - below
    return bounds[n] if inside <= 0 else low + (bounds[n] - low) * (rank - below) / inside
