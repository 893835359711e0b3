"""What was survived and what was covered: tests say so by a mark and by their parameters; reports carry it.

``@pytest.mark.survives("Redis killed", on="log", so="what is required")`` makes a test a row of the table of faults;
what it counted comes by its ``survived`` fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

FAULT: Final = "fault"
REQUIRED: Final = "required"
FIGURES: Final = "figures"
ADAPTER: Final = "adapter"
SEEN: Final = {"passed": "as required", "failed": "NOT SO", "skipped": "not tried"}
COUNTED: Final = ("accepted", "sent", "lost", "twice")
ENGINES: Final = frozenset({"memory", "sqlite", "postgres", "redis", "kafka", "log", "cassandra", "handed over"})

Survived = Callable[..., None]
"""``survived(accepted=600, sent=600, lost=0, twice=3)``: what the test's row counts."""


def note(item: pytest.Item) -> None:
    """Have the reports of *item* say which fault it survives, and which suite it runs on which adapter."""
    for mark in item.iter_markers("survives"):
        (fault,) = mark.args
        item.user_properties += [(FAULT, f"{fault} ({mark.kwargs['on']})"), (REQUIRED, [fault, *mark.kwargs.values()])]
    given = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    for value in given:
        if isinstance(value, str) and set(value.split("+")) <= ENGINES:
            suite = item.path.stem.removeprefix("test_").partition("_")[0]
            item.user_properties.append((ADAPTER, f"{value}: {suite}"))


def counter(item: pytest.Item) -> Survived:
    """What notes the figures of one test."""

    def count(**figures: object) -> None:
        item.user_properties.append((FIGURES, {name: str(value) for name, value in figures.items()}))

    return count


def rows(reports: Iterable[pytest.TestReport]) -> list[dict[str, str]]:
    """The table of faults, those that were not tried for want of a server included."""
    found = []
    for report in sorted(reports, key=lambda report: report.nodeid):
        said: dict[str, Any] = dict(report.user_properties)
        if REQUIRED not in said or (report.when != "call" and report.passed):
            continue
        fault, engine, required = said[REQUIRED]
        figures: dict[str, str] = dict(said.get(FIGURES, {}))
        counted = {name: figures.pop(name, "") for name in COUNTED}
        others = ", ".join(f"{name} {value}".replace("_", " ") for name, value in figures.items())
        seen = ": ".join(filter(None, [SEEN[report.outcome], others]))
        found.append({"fault": fault, "on": engine, **counted, "required": required, "seen": seen})
    return found
