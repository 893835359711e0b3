"""What all tests share: a mark for each folder, tables, chance, hypothesis without deadlines (machines are busy)."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import settings

from tests import survival
from tests.survival import Survived
from tests.tables import AddRow, adder, collected, drawn

TESTS = Path(__file__).parent
pytest_plugins = ["tests.engines"]

settings.register_profile("waypost", deadline=None, print_blob=True)
settings.load_profile("waypost")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with the name of its folder, so that `-m unit` selects by kind."""
    for item in items:
        survival.note(item)
        if item.path.is_relative_to(TESTS):
            folder = item.path.relative_to(TESTS).parts[0]
            item.add_marker(getattr(pytest.mark, folder))


@pytest.fixture
def rng() -> random.Random:
    """Chance that can be repeated: the seed is printed when a test fails."""
    seed = int(os.environ.get("WAYPOST_CHAOS_SEED", random.randrange(1 << 32)))
    print(f"WAYPOST_CHAOS_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def table(request: pytest.FixtureRequest) -> AddRow:
    """Adds a row to a table of the terminal summary."""
    return adder(request.node)


@pytest.fixture
def survived(request: pytest.FixtureRequest) -> Survived:
    """Notes what a test with the mark `survives` counted."""
    return survival.counter(request.node)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tables."""
    told = terminalreporter.stats.values()
    reports = [report for found in told for report in found if isinstance(report, pytest.TestReport)]
    tables = collected(report for report in reports if report.when == "call")
    for title, rows in (tables | {"faults survived": survival.rows(reports)}).items():
        if not rows:
            continue
        terminalreporter.section(title)
        for line in drawn(rows):
            terminalreporter.write_line(line)
