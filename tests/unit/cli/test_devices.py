"""Devices by the command line."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from waypost.cli import waypost
from waypost.client import Client

ADD = ["devices", "add", "ann", "laptop", "--platform", "web", "--token", "-", "--p256dh", "BN", "--auth", "-"]


def test_a_dash_reads_the_token_and_the_secret_of_a_device_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the arguments, everybody on the machine can see."""
    said: list[Any] = []

    def add_device(_client: Client, *given: Any) -> dict[str, Any]:
        said.append(given)
        return {"created": True, "pushed_out": []}

    monkeypatch.setattr(Client, Client.add_device.__name__, add_device)
    monkeypatch.setenv("WAYPOST_API_KEY", "wp_any")
    result = CliRunner().invoke(waypost, ADD, input="https://push.example/abc\nk8\n")
    assert result.exit_code == 0, result.output
    ((_, _, device),) = said
    assert (device["token"], device["keys"]["auth"]) == ("https://push.example/abc", "k8")
    assert CliRunner().invoke(waypost, ADD, input="https://push.example/abc\n").exit_code == 2
