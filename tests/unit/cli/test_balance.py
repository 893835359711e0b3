"""The balance by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pysqlite3 import dbapi2

from waypost.cli import waypost
from waypost.client import Client

FLOW = {"ended": {"sent": 1_200}, "waiting": 3, "difference": 0}
LINES = {
    "requests": {"requests": 1_210, "refused": 4, "duplicates": 3, "accepted": 1_203, "difference": 0},
    "notifications": {"accepted": 1_203, "recipients": 0, "scheduled": 0, "processing": 0, **FLOW},
    "deliveries": {"targets": 1_203, "parked": 0, "under_way": 0, **FLOW},
}


@pytest.mark.parametrize("adds_up", [True, False])
def test_what_the_api_says_is_shown_line_by_line(adds_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program sees by the exit code whether it adds up."""
    answer: dict[str, Any] = {"as_of": "2027-01-15T08:00:00Z", "adds_up": adds_up, "lanes": {"normal": LINES}}
    monkeypatch.setattr(Client, Client.balance.__name__, lambda _client: answer)
    monkeypatch.setenv("WAYPOST_API_KEY", "wp_any")
    shown = CliRunner().invoke(waypost, ["balance"])
    assert shown.exit_code == (0 if adds_up else 1), shown.output
    _, requests, notifications, deliveries, end = (line.split() for line in shown.output.splitlines())
    assert requests[:4] == ["normal", "requests", "1,210", "accepted"]
    assert notifications == ["normal", "notifications", "1,203", "sent", "1,200", "waiting", "3", "0"]
    assert deliveries[1] == "deliveries"
    assert ("NOT" in end) is not adds_up


def test_a_recount_says_what_differs_and_exits_with_1(tmp_path: Path) -> None:
    config = tmp_path / "waypost.yaml"
    config.write_text("apps: {demo: {}}\nstore: sqlite:///waypost.db\n")
    words = ["balance", "--audit", "--config", str(config)]
    sound = CliRunner().invoke(waypost, words)
    assert (sound.exit_code, sound.stdout) == (0, "every row is counted, and every count has its rows\n")
    with dbapi2.connect(tmp_path / "waypost.db") as connection:
        connection.execute("INSERT INTO counter VALUES ('demo', 'normal', 500000, 'sent', 2)")
    connection.close()
    spoilt = CliRunner().invoke(waypost, [*words, "--json"])
    assert spoilt.exit_code == 1
    named = {"app": "demo", "lane": "normal", "line": "notifications", "status": "sent", "counted": 2, "rows": 0}
    assert json.loads(spoilt.stdout) == {"differences": [named | {"hours": ["2027-01-15T08Z"]}]}
    listed = CliRunner().invoke(waypost, words).stdout.splitlines()
    assert listed[1].split() == ["demo", "normal", "notifications", "sent", "2", "0", "2027-01-15T08Z"]
