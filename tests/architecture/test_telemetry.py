"""Nothing is announced that is never said: every event and metric is used somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from waypost.telemetry import Event, Metric

SOURCE = "\n".join(path.read_text() for path in Path("src/waypost").rglob("*.py") if "telemetry" not in path.parts)


@pytest.mark.parametrize("word", [*Event, *Metric], ids=lambda word: word.label)
def test_every_event_and_metric_is_used(word: Event | Metric) -> None:
    """An event or metric that nobody sends would be a promise in the docs only."""
    assert f"{type(word).__name__}.{word.name}" in SOURCE
