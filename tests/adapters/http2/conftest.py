"""Both event loops, TLS for a server on loopback, and a table of the hostile moments."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from tests.adapters.http2.client import Tls
from tests.tables import AddRow
from waypost.bench.kernel import certificate

HOSTILE = ("test_hostile_server", "test_hostile_connections", "test_dial")


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


@pytest.fixture(autouse=True)
def hostile_row(request: pytest.FixtureRequest, table: AddRow) -> None:
    """Makes a row of each test of a hostile moment: its name is the moment, its docstring what is required."""
    function = request.function
    if request.module.__name__.rpartition(".")[2] in HOSTILE:
        moment = function.__name__.removeprefix("test_").replace("_", " ")
        table("hostile HTTP/2 server", moment=moment, required=" ".join(function.__doc__.split()))
