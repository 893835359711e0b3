"""Nothing is announced that is never said: every event and metric is used somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.shows import shows
from waypost.telemetry import Event, Metric

SOURCE = "\n".join(path.read_text() for path in Path("src/waypost").rglob("*.py") if "telemetry" not in path.parts)


@pytest.mark.parametrize("word", [*Event, *Metric], ids=lambda word: word.label)
def test_every_event_and_metric_is_used(word: Event | Metric) -> None:
    """An event or metric that nobody sends would be a promise in the docs only."""
    assert f"{type(word).__name__}.{word.name}" in SOURCE


@shows("S1-128")
def test_alert_rules_speak_of_metrics_that_there_are() -> None:
    """A rule on a metric that was renamed would never fire, and nobody would know."""
    rules = yaml.safe_load(Path("deploy/prometheus/alerts.yaml").read_text())["groups"][0]["rules"]
    known = {metric.label: set(metric.labels) for metric in Metric}
    for rule in rules:
        (metric,) = re.findall(r"waypost_\w+", rule["expr"])
        said = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert said <= known[metric] | {"instance"}, rule["alert"]
