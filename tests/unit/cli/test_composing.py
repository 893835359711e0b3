"""What the options of ``waypost send`` become."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from waypost.cli.composing import composed, notification_options


@click.command()
@notification_options
def show(**fields: Any) -> None:
    """Print the notification."""
    click.echo(json.dumps(composed(fields)))


def test_a_token_and_its_platform_are_a_device() -> None:
    ran = CliRunner().invoke(show, ["--token", "t-1", "--platform", "android", "--title", "Hi"])
    assert json.loads(ran.output) == {"device": {"platform": "android", "token": "t-1"}, "title": "Hi"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--title", "Hi"], "give a USER_ID, or --token"),
        (["--token", "t-1"], "--token and --platform belong together"),
        (["ann", "--platform", "ios"], "--token and --platform belong together"),
    ],
)
def test_a_recipient_is_whole(options: list[str], why: str) -> None:
    ran = CliRunner().invoke(show, options)
    assert ran.exit_code == 2
    assert why in ran.output


@pytest.mark.parametrize("said", [{"device": {"platform": "ios", "token": "ab"}}, {"to": {"channel": "fcm"}}])
def test_a_file_may_name_any_recipient(said: dict[str, Any]) -> None:
    ran = CliRunner().invoke(show, ["--from", "-"], input=json.dumps(said))
    assert json.loads(ran.output) == said
