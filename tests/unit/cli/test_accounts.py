"""``waypost accounts``: what it makes lets somebody in, and is shown once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest
from click.testing import CliRunner, Result

from waypost.cli import waypost
from waypost.domain.time import SECOND_MS, Instant
from waypost.features.dashboard.credentials import Checking, step_of
from waypost.stores.sql.accounts import Account

NOW = Instant(1_800_000_000_000)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "waypost.yaml"
    path.write_text("apps: {demo: {}}")
    return str(path)


def _run(config: str, *arguments: str) -> Result:
    return CliRunner().invoke(waypost, ["accounts", *arguments, "--config", config])


def test_accounts_are_made_listed_reset_and_removed(config: str) -> None:
    made = json.loads(_run(config, "create", "ann", "--role", "operator", "--json").stdout)
    assert (made["name"], made["role"]) == ("ann", "operator") and len(made["password"]) == 20
    screen = _run(config, "create", "screen", "--role", "viewer", "--no-second-factor")
    assert "shown once" in screen.stderr and "second factor" not in screen.stdout
    listed = json.loads(_run(config, "list", "--json").stdout)
    assert [(each["name"], each["role"], each["second_factor"]) for each in listed] == [
        ("ann", "operator", True),
        ("screen", "viewer", False),
    ]
    assert made["password"] not in _run(config, "list").stdout
    refused = _run(config, "create", "ann", "--role", "admin")
    assert refused.exit_code == 1 and "there is one already; reset gives it a new password" in refused.output
    assert json.loads(_run(config, "reset", "screen", "--role", "admin", "--json").stdout)["role"] == "admin"
    again = json.loads(_run(config, "reset", "ann", "--json").stdout)
    assert again["password"] != made["password"] and again["role"] == "operator"
    assert _run(config, "logout", "ann").stdout == "0 sessions ended\n"
    assert json.loads(_run(config, "logout", "ann", "--json").stdout) == {"ended": 0}
    assert json.loads(_run(config, "remove", "screen", "--json").stdout) == {"removed": "screen"}
    assert _run(config, "remove", "ann").exit_code == 0 and _run(config, "remove", "ann").exit_code == 1
    assert _run(config, "reset", "ann").exit_code == 1
    for wrong, why in (("an n", "no space"), ("local", "without an account"), ("(unknown)", "without an account")):
        refused = _run(config, "create", wrong, "--role", "viewer")
        assert refused.exit_code == 2 and why in " ".join(refused.output.split()), refused.output


def test_a_password_and_a_code_are_checked_as_they_were_made(config: str) -> None:
    made = json.loads(_run(config, "create", "ann", "--role", "admin", "--json").stdout)
    (secret,) = parse_qs(urlsplit(made["second_factor"]).query)["secret"]
    now_s = NOW // SECOND_MS
    for late_s, is_good in ((0, True), (-30, True), (30, True), (-90, False), (90, False)):
        assert (step_of(secret, pyotp.TOTP(secret).at(now_s + late_s), NOW) is not None) is is_good
    assert step_of(secret, "", NOW) is None
    assert not asyncio.run(Checking().is_password(None, made["password"]))
    broken = Account("ann", "admin", "no hash", None, NOW)
    assert not asyncio.run(Checking().is_password(broken, made["password"]))
