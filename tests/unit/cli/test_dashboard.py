"""``waypost dashboard``, and what ``waypost serve`` says: a link for whoever may read what lies beside the store."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result

from waypost.bootstrap.dashboard import prepare_dashboard
from waypost.bootstrap.registry import load
from waypost.cli import waypost
from waypost.cli.serving import _say_dashboard
from waypost.features.dashboard.invitations import Invitations
from waypost.runtime.clock import SystemClock

URL = "http://127.0.0.1:8080/dashboard"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "waypost.yaml"
    path.write_text("apps: {demo: {}}\nstore: sqlite:///waypost.db\n")
    return path


def _served(config: Path) -> None:
    """Do what `serve` does when it starts."""
    prepare_dashboard(load(config, {}))


def _run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(waypost, ["dashboard", *arguments, "--config", str(config)])


def _is_good(config: Path, link: str) -> bool:
    (token,) = parse_qs(urlsplit(link).query)["token"]
    return Invitations(config.parent / "waypost.db.run").is_link(token, SystemClock().now())


def test_a_link_is_printed_again_and_again_and_a_renewal_ends_those_before(config: Path) -> None:
    early = _run(config)
    assert early.exit_code == 1 and "`waypost serve` makes it when it starts" in str(early.exception)
    _served(config)
    said = _run(config)
    assert said.stdout.startswith(f"{URL}?token=") and len(said.stdout.splitlines()) == 1 and "operator" in said.stderr
    again = json.loads(_run(config, "--json").stdout)
    assert set(again) == {"url", "good_until"} and _is_good(config, again["url"]) and _is_good(config, said.stdout)
    renewed = _run(config, "--renew").stdout.strip()
    assert _is_good(config, renewed) and not _is_good(config, again["url"])


def test_where_people_log_in_the_address_is_bare(config: Path) -> None:
    config.write_text("apps: {demo: {}}\ndashboard: {accounts: true}\nrest: {public_url: 'https://push.example.com'}\n")
    assert json.loads(_run(config, "--json").stdout) == {
        "url": "https://push.example.com/dashboard",
        "good_until": None,
    }
    assert "log in" in _run(config).stderr


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("dashboard: {enabled: false}", "`dashboard.enabled` is false"),
        ("roles: [worker]", "the role `api`"),
        ("listen: 0.0.0.0:8080", "`listen` on the loopback"),
        ("limits: {trusted_proxies: [127.0.0.1]}", "no proxy before it"),
        ("listen: 127.0.0.1:0", "has port 0: give the address that `waypost serve` printed as --url"),
    ],
)
def test_where_there_is_none_it_says_why(lines: str, why: str, config: Path) -> None:
    config.write_text(f"apps: {{demo: {{}}}}\n{lines}\n")
    refused = _run(config)
    assert refused.exit_code == 1 and why in str(refused.exception)


def test_a_port_that_was_free_is_given(config: Path) -> None:
    config.write_text("apps: {demo: {}}\nlisten: 127.0.0.1:0\n")
    _served(config)
    assert _run(config, "--url", "http://127.0.0.1:41234/").stdout.startswith("http://127.0.0.1:41234/dashboard?token=")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_serve_prints_the_link_in_a_terminal_and_into_no_file(
    is_terminal: bool, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _served(config)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    _say_dashboard(load(config, {}), "http://127.0.0.1:8080")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"Dashboard: {URL}") and ("?token=" in line) is is_terminal
    assert ("waypost dashboard" in line) is not is_terminal


def test_serve_starts_although_no_link_can_be_made(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = config.parent / "waypost.db.run"
    beside.mkdir()
    (beside / "dashboard.key").write_bytes(b"half")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _say_dashboard(load(config, {}), "http://127.0.0.1:8080")
    assert capsys.readouterr().out == f"Dashboard: {URL} (`waypost dashboard` prints a link that opens it)\n"
    config.write_text("apps: {demo: {}}\ndashboard: {enabled: false}\n")
    _say_dashboard(load(config, {}), "http://127.0.0.1:8080")
    assert capsys.readouterr().out == ""
