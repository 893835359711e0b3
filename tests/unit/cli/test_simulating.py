"""``waypost simulate`` as it is typed: a file of traffic through today's policy and a proposed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from waypost.bootstrap.admin import migrate_store
from waypost.bootstrap.registry import load
from waypost.cli.simulating import simulate
from waypost.domain.errors import StorageBroken

CONFIG = """\
store: sqlite:///waypost.db
apps:
  demo:
    inapp: {}
    types: {news: {cap: {limit: 2}}}
"""
POLICY = {"types": {"news": {"cap": {"limit": 1, "over": "drop"}}}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose store is there; a policy and a file of traffic beside it."""
    file = tmp_path / "waypost.yaml"
    file.write_text(CONFIG)
    migrate_store(load(file, {}))
    (tmp_path / "proposed.json").write_text(json.dumps(POLICY))
    line = {"user_id": "ann", "title": "News", "type": "news", "channels": ["inapp"]}
    told = [line | {"at": f"2026-11-25T{hour:02}:00:00+01:00"} for hour in (9, 10)]
    (tmp_path / "traffic.jsonl").write_text("\n".join(map(json.dumps, told)))
    return file


def said(config: Path, *options: str) -> Result:
    """Type the command."""
    return CliRunner().invoke(simulate, ["--config", str(config), *options], catch_exceptions=False)


def test_the_difference_is_a_table_or_json(config: Path) -> None:
    asked = ["--policy", str(config.parent / "proposed.json"), "--traffic", str(config.parent / "traffic.jsonl")]
    table = said(config, *asked).stdout
    assert "2 notifications of 1 user: 0 fare otherwise" in table
    assert "feed" in table
    found = json.loads(said(config, *asked, "--json", "--limit", "1").stdout)
    assert (found["app"], found["complete"], found["notifications"]) == ("demo", False, 1)
    assert found["ends"] == [{"ending": "feed", "reason": None, "before": 1, "after": 1}]


def test_recorded_traffic_is_that_of_the_last_day(config: Path) -> None:
    assert "0 notifications of 0 users" in said(config).stdout


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "waypost.yaml"
    file.write_text(CONFIG)
    with pytest.raises(StorageBroken, match="no such store yet"):
        said(file)
    (tmp_path / "waypost.db").touch()
    with pytest.raises(StorageBroken, match="waypost migrate"):
        said(file)
    assert (tmp_path / "waypost.db").stat().st_size == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--from", "yesterday"), "is a time such as"),
        (("--app", "none"), "--app is one of demo"),
        (("--notification", "none"), "is the id of a notification"),
    ],
)
def test_what_makes_no_sense_is_said(config: Path, options: tuple[str, ...], why: str) -> None:
    result = said(config, *options)
    assert (result.exit_code, why in result.output) == (2, True)
