"""What all tests share: a mark for each folder, tables, hypothesis without deadlines (a busy machine is no bug)."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.tables import AddRow, adder, collected, drawn

TESTS = Path(__file__).parent
pytest_plugins = ["tests.engines"]

settings.register_profile("waypost", deadline=None, print_blob=True)
settings.load_profile("waypost")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with the name of its folder, so that `-m unit` selects by kind."""
    for item in items:
        if item.path.is_relative_to(TESTS):
            folder = item.path.relative_to(TESTS).parts[0]
            item.add_marker(getattr(pytest.mark, folder))


@pytest.fixture
def table(request: pytest.FixtureRequest) -> AddRow:
    """Adds a row to a table of the terminal summary."""
    return adder(request.node)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tables."""
    reports = [
        report
        for found in terminalreporter.stats.values()
        for report in found
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
    for title, rows in collected(reports).items():
        terminalreporter.section(title)
        for line in drawn(rows):
            terminalreporter.write_line(line)
