"""Both event loops, and TLS for a server on loopback."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from benchmarks.kernel import certificate
from tests.adapters.http2.client import Tls


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
