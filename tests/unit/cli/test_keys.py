"""Keys by the command line, over a store of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from waypost.cli import waypost
from waypost.cli.keys import SCOPES
from waypost.domain.errors import InvalidRequest


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """One app, one file."""
    path = tmp_path / "waypost.yaml"
    path.write_text("apps: {demo: {}}\nstore: sqlite:///waypost.db\n")
    return path


def said(config: Path, *words: str) -> dict[str, Any]:
    """What a command answers, as JSON."""
    result = CliRunner().invoke(waypost, ["keys", *words, "--config", str(config), "--json"])
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_a_key_is_made_rotated_listed_and_revoked(config: Path) -> None:
    first = said(config, "create", "--app", "demo", "--caller", "shop", "--scope", "read", "--expires", "90d")
    assert (first["scopes"], first["expires_at"] > first["created_at"]) == (["read"], True)
    second = said(config, "rotate", first["prefix"], "--overlap", "1h")
    assert (second["caller"], second["scopes"]) == ("shop", ["read"])
    assert second["expires_at"] > first["expires_at"]
    old, new = said(config, "list")["items"]
    assert old["created_at"] < old["expires_at"] < first["expires_at"]
    assert new == {name: value for name, value in second.items() if name != "key"}
    assert said(config, "revoke", second["prefix"]) == {"revoked": second["prefix"]}
    assert CliRunner().invoke(waypost, ["keys", "rotate", second["prefix"], "--config", str(config)]).exit_code == 1


def test_a_key_without_a_choice_may_do_everything_for_ever(config: Path) -> None:
    made = said(config, "create", "--app", "demo", "--caller", "shop")
    assert (made["scopes"], made["expires_at"]) == (sorted(SCOPES), None)
    listed = CliRunner().invoke(waypost, ["keys", "list", "--config", str(config)])
    assert " all " in listed.output


def test_what_an_unbounded_key_may_do_is_said_on_stderr_and_not_of_a_bounded_one(config: Path) -> None:
    words = ["keys", "create", "--app", "demo", "--caller", "shop", "--config", str(config)]
    loud = CliRunner().invoke(waypost, words)
    assert [line.split(":")[0] for line in loud.stderr.splitlines()].count("WARNING") == 2
    assert all(scope in loud.stderr for scope in SCOPES) and "never ends" in loud.stderr
    assert loud.stdout.startswith("wp_") and len(loud.stdout.splitlines()) == 1
    bounded = CliRunner().invoke(waypost, [*words, "--scope", "read", "--expires", "90d"])
    assert "WARNING" not in bounded.stderr


def test_no_key_is_made_in_the_name_of_a_token(config: Path) -> None:
    words = ["keys", "create", "--app", "demo", "--caller", "login:alice", "--config", str(config)]
    refused = CliRunner().invoke(waypost, words)
    assert isinstance(refused.exception, InvalidRequest)
    assert said(config, "list")["items"] == []


@pytest.mark.parametrize("caller", ["", "a" * 129, "a\n", "a\tb", "a\x7f"])
def test_a_caller_is_named_as_by_rest(config: Path, caller: str) -> None:
    words = ["keys", "create", "--app", "demo", "--config", str(config), "--caller"]
    assert CliRunner().invoke(waypost, [*words, caller]).exit_code == 2
    assert CliRunner().invoke(waypost, [*words, "Büro\u00a01 \U0001f4e6"]).exit_code == 0


@pytest.mark.parametrize("span", ["90", "d", "-1d", "1.5h", "9999999d", "1w", ""])
def test_a_span_that_makes_no_sense_is_wrong_usage(config: Path, span: str) -> None:
    words = ["keys", "create", "--app", "demo", "--caller", "shop", "--expires", span, "--config", str(config)]
    assert CliRunner().invoke(waypost, words).exit_code == 2
