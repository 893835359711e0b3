"""Both event loops, TLS for a server on loopback, and tables of what was seen, printed after the run."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from benchmarks.kernel import certificate
from tests.adapters.http2.client import Tls

_ROWS: pytest.StashKey[dict[str, list[dict[str, object]]]] = pytest.StashKey()

HOSTILE = ("test_hostile_server", "test_hostile_connections", "test_dial")

AddRow = Callable[..., None]


def pytest_configure(config: pytest.Config) -> None:
    """Begin with empty tables."""
    config.stash[_ROWS] = {}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops that Waypost runs on."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for localhost, and who trusts it."""
    cert_file, key_file = certificate(tmp_path_factory.mktemp("tls"))
    return Tls(cert_file, key_file)


@pytest.fixture
def table(pytestconfig: pytest.Config) -> AddRow:
    """Adds a row to a table of the terminal summary: ``table("interop", server="nginx", …)``; equal rows are one."""

    def add(title: str, **columns: object) -> None:
        rows = pytestconfig.stash[_ROWS].setdefault(title, [])
        if columns not in rows:
            rows.append(columns)

    return add


@pytest.fixture(autouse=True)
def hostile_row(request: pytest.FixtureRequest, table: AddRow) -> None:
    """Makes a row of each test of a hostile moment: its name is the moment, its docstring what is required."""
    function = request.function
    if request.module.__name__.rpartition(".")[2] in HOSTILE:
        moment = function.__name__.removeprefix("test_").replace("_", " ")
        table("hostile HTTP/2 server", moment=moment, required=" ".join(function.__doc__.split()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables."""
    for title, rows in config.stash[_ROWS].items():
        names = list(rows[0])
        lines = [names, *([str(row[name]) for name in names] for row in rows)]
        widths = [max(len(line[n]) for line in lines) for n in range(len(names))]
        terminalreporter.section(title)
        for line in lines:
            cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            terminalreporter.write_line("  ".join(cells).rstrip())
