"""Tables of what the journeys saw, printed after the run, and how much chaos they make."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

_ROWS: pytest.StashKey[dict[str, list[dict[str, object]]]] = pytest.StashKey()

AddRow = Callable[..., None]


def pytest_configure(config: pytest.Config) -> None:
    """Begin with empty tables."""
    config.stash[_ROWS] = {}


@pytest.fixture
def table(pytestconfig: pytest.Config) -> AddRow:
    """Adds a row to a table of the terminal summary: ``table("kills", workers=2, …)``."""

    def add(title: str, **columns: object) -> None:
        pytestconfig.stash[_ROWS].setdefault(title, []).append(columns)

    return add


@pytest.fixture
def rng() -> random.Random:
    """Chance that can be repeated: the seed is printed when a test fails."""
    seed = int(os.environ.get("WAYPOST_CHAOS_SEED", random.randrange(1 << 32)))
    print(f"WAYPOST_CHAOS_SEED={seed}")
    return random.Random(seed)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables."""
    for title, rows in config.stash[_ROWS].items():
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
        widths = [max(len(line[n]) for line in lines) for n in range(len(names))]
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
