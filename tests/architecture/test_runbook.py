"""The runbook has a section for each alert, and names commands and metrics that there are."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
import yaml

from scripts.check_docs import anchors
from scripts.observability.alerts import ALERTS, Alert
from scripts.observability.figures import FIGURES
from tests.shows import shows
from waypost.cli import waypost
from waypost.telemetry import Event, Metric

PAGE = Path("docs/runbook.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n\n(.*?)(?=\n\n## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SPANS = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", PAGE)]
COMMANDS = sorted({span for span in SPANS if span.startswith("waypost ")})


@shows("S3-135")
def test_there_is_a_section_for_each_alert_and_for_nothing_else() -> None:
    assert [*SECTIONS] == [alert.name for alert in ALERTS]


@shows("S3-135")
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_section_says_what_it_means_what_to_do_and_when_it_is_over(alert: Alert) -> None:
    """And where to look, where that is not said by the alert itself."""
    section = SECTIONS[alert.name]
    assert {"**means**", "**do**", "**over**"} <= set(re.findall(r"\*\*\w+\*\*", section.lower()))


def test_each_rule_names_its_section() -> None:
    groups = yaml.safe_load(Path("deploy/prometheus/alerts.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    assert len(rules) == len(ALERTS)
    for rule in rules:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (page, anchor in anchors(PAGE)) == ("docs/runbook.md", True), rule["alert"]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_there(command: str) -> None:
    """With the options that it is given, and as many words as it takes."""
    found, words = _command_of(command.split()[1:])
    options = {name for each in found.params if isinstance(each, click.Option) for name in each.opts}
    assert {word for word in words if word.startswith("--")} <= options
    assert not isinstance(found, click.Group), "a command of it is meant"


def _command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Find the command that *words* begin with, and the words after it."""
    found: click.Command = waypost
    context = click.Context(waypost)
    while isinstance(found, click.Group) and words:
        inner = found.get_command(context, words[0])
        assert inner is not None, f"no command {words[0]}"
        found, words = inner, words[1:]
    return found, words


def test_each_metric_and_event_is_there() -> None:
    metrics = {metric.label for metric in Metric} | FIGURES.keys()
    said = {name for span in SPANS for name in re.findall(r"\bwaypost[_:][\w:]+", span)}
    assert said <= metrics
    dotted = {span for span in SPANS if re.fullmatch(r"[a-z_]+\.[a-z_]+", span)}
    events = {event.label for event in Event}
    assert dotted - events <= {"log.level", "retention.notifications_days"}
