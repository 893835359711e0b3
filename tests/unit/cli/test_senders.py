"""``waypost senders``: what is installed, and what a new package may not be called; nothing is overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from waypost.cli import waypost


def test_every_sender_is_listed_with_its_package() -> None:
    shown = CliRunner().invoke(waypost, ["senders", "--json"])
    found = {each["channel"]: each for each in json.loads(shown.output)["senders"]}
    assert found["fcm"]["platforms"] == ["android", "ios_fcm", "web_fcm"]
    assert found["sms"]["package"].startswith("waypost ")
    assert found["sms"]["in_lab"]
    assert "Web Push" in CliRunner().invoke(waypost, ["senders"]).output


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["Pager"], "lower-case letters and digits"),
        (["../pager"], "lower-case letters and digits"),
        (["a" * 33], "is no name for a channel or a platform"),
        (["sms"], "the channel sms is that of Twilio already"),
        (["beeper", "--platform", "phone"], "the platform phone is that of Twilio already"),
        (["beeper", "--channel", "retry"], "'retry' is another key of an app's settings"),
        (["beeper", "--title", 'a "b"'], "no quotes and backslashes"),
    ],
)
def test_a_name_that_cannot_be_is_refused(
    arguments: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(waypost, ["senders", "new", *arguments])
    assert refused.exit_code == 2
    assert why in refused.output
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    refused = CliRunner().invoke(waypost, ["senders", "new", "pager", "--into", str(tmp_path)])
    assert refused.exit_code == 1
    assert "is there already" in refused.output
    assert [path.read_text() for path in tmp_path.iterdir()] == ["kept"]


def test_the_names_are_those_that_were_chosen(tmp_path: Path) -> None:
    chosen = ["acme-pager", "--channel", "pager", "--platform", "beeper", "--title", "Acme Pager"]
    made = CliRunner().invoke(waypost, ["senders", "new", *chosen, "--into", str(tmp_path / "new"), "--json"])
    assert json.loads(made.output)["module"] == "waypost_acme_pager"
    plugin = (tmp_path / "new" / "src" / "waypost_acme_pager" / "plugin.py").read_text()
    assert 'Platform("beeper")' in plugin
    assert 'title="Acme Pager"' in plugin
    project = (tmp_path / "new" / "pyproject.toml").read_text()
    assert 'pager = "waypost_acme_pager.plugin:PLUGIN"' in project
