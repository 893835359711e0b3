"""The doors of a worker."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.adapters.rest.service import Service
from waypost.bootstrap.intake import servers_of
from waypost.config import AppSettings, Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.ids import AppId
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.runtime.listening import Listen

OPEN = Config(apps={AppId("demo"): AppSettings()}, grpc=GrpcSettings(listen=Listen("127.0.0.1", 0)))


def test_grpc_is_a_door_only_where_it_is_asked_for_and_requests_are_taken() -> None:
    """REST is always there: it answers operators, too."""
    with socket.socket() as listener:
        assert len(servers_of(Config(apps=OPEN.apps), Service().api, listener, {})) == 1
        assert len(servers_of(OPEN, Service(operating_only=True).api, listener, {})) == 1
        assert len(servers_of(OPEN, Service().api, listener, {})) == 2


@pytest.mark.parametrize("package", ["grpc", "grpc_health.v1", "grpc_reflection.v1alpha", "google.rpc"])
def test_a_missing_extra_is_named_with_its_command(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without it does everything else."""
    for name in [name for name in sys.modules if name.startswith("waypost.entrypoints.grpc.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with socket.socket() as listener, pytest.raises(ConfigurationError, match=r"pip install '\.\[grpc\]' in a clone"):
        servers_of(OPEN, Service().api, listener, {})
