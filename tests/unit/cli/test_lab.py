"""``waypost lab --port``: names and numbers that make no sense are refused before anything is opened."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from waypost.cli import waypost


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("sms=2196", "no gateway 'sms'; known: email, email_tls, "),
        ("email", "expected NAME=PORT, got 'email'"),
        ("email=-1", "expected NAME=PORT, got 'email=-1'"),
        ("email_tls=65536", "expected NAME=PORT, got 'email_tls=65536'"),
    ],
)
def test_a_port_that_makes_no_sense_is_refused(said: str, why: str) -> None:
    result = CliRunner().invoke(waypost, ["lab", "--port", said])
    assert result.exit_code == 2
    assert why in result.output
