"""The rules for Prometheus, evaluated by Prometheus's own promtool."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.observability.alerts import ALERTS, Alert
from scripts.observability.figures import FIGURES as RECORDED
from scripts.observability.files import RULES, files
from tests.adapters.telemetry.alert_cases import CASES, FIGURES, IN_HOURS, Case
from tests.shows import shows
from waypost.telemetry import Metric

RAISED = 'group by (alertname) (ALERTS{alertstate="firing"})'


def promtool(*arguments: str | Path) -> None:
    """Run promtool; what it complains of is the failure."""
    program = shutil.which("promtool")
    if program is None:
        assert os.environ.get("CI") != "true", "no promtool: apt-get install prometheus"
        pytest.skip("no promtool: apt-get install prometheus")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def in_promtools_form(series: dict[str, str], at: str, expression: str, samples: dict[str, float]) -> Any:
    """Write one case as promtool reads it, with a value for each of the units of *at*, a time like ``30m``."""
    expected = [{"labels": labels, "value": value} for labels, value in samples.items()]
    return {
        "interval": f"1{at[-1]}",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": expression, "eval_time": at, "exp_samples": expected}],
    }


def of_alerts(cases: Iterable[Case], unit: str) -> list[Any]:
    """Write what is raised in each of *cases*."""
    raised = [(case, {f'{{alertname="{name}"}}': 1.0 for name in case.raised}) for case in cases]
    return [in_promtools_form(case.series, f"{case.minutes}{unit}", RAISED, names) for case, names in raised]


def of_figures() -> Iterator[Any]:
    """Write what is recorded."""
    for figure in FIGURES:
        expression = f"round(sum by (app, lane, provider, code, route) ({figure.name}), 0.0001)"
        yield in_promtools_form(figure.series, "30m", expression, {figure.labels: figure.value})


def evaluate(file: Path, interval: str, tests: Sequence[Any]) -> None:
    """Have promtool evaluate the rules every *interval* and look at *tests*."""
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": interval, "tests": [*tests]}))
    promtool("test", "rules", file)


@shows("S3-94", "S3-95", "S3-96", "S3-97", "S3-98", "S3-99", "S3-100", "S1-128", "S1-129")
def test_each_alert_is_raised_when_it_should_be_and_not_before(tmp_path: Path) -> None:
    """Each case says all that is raised: no alert is raised by the trouble of another."""
    promtool("check", "rules", RULES)
    evaluate(tmp_path / "minutes.yaml", "2m", of_alerts(CASES, "m"))
    evaluate(tmp_path / "hours.yaml", "1h", of_alerts(IN_HOURS, "h"))


def test_each_alert_has_a_case_in_which_it_is_raised() -> None:
    assert {name for case in (*CASES, *IN_HOURS) for name in case.raised} == {alert.name for alert in ALERTS}


def test_a_wrong_case_is_noticed(tmp_path: Path) -> None:
    """Else promtool might have evaluated nothing."""
    wrong = Case("all is quiet", {'up{job="waypost",instance="a"}': "0x60"})
    with pytest.raises(AssertionError, match="WaypostDown"):
        evaluate(tmp_path / "wrong.yaml", "1m", of_alerts([wrong], "m"))


@shows("S3-82", "S3-83", "S3-84", "S3-85", "S3-90")
def test_each_figure_is_what_its_counters_say(tmp_path: Path) -> None:
    """What is sent by period, the shares of success and of each error, the average time, the rate of work."""
    evaluate(tmp_path / "figures.yaml", "1m", [*of_figures()])


def test_the_rules_are_written_from_the_metrics_that_there_are() -> None:
    """After a change: `python -m scripts.observability`."""
    for path, text in files().items():
        assert path.read_text(encoding="utf-8") == text, path


_NAME = re.compile(r"\b(?:waypost[_:][\w:]*|up)\b")
LABELS = {metric.label: {*metric.labels} for metric in Metric}
BESIDE = {"up": {"job"}, **{name: {"app", "lane", "provider", "code", "route", "query"} for name in RECORDED}}
"""The labels of what is no metric of Waypost's."""
GIVEN = {"instance", "job", "le"}
"""The labels that Prometheus gives to all."""


def strangers(expression: str) -> set[str]:
    """Find names and labels in *expression* that there are not."""
    known = LABELS | BESIDE
    names = _NAME.findall(expression)
    without = {name: re.sub(r"_(bucket|sum|count)$", "", name) if name not in known else name for name in names}
    unknown = {name for name, bare in without.items() if bare not in known}
    labels = {label for bare in without.values() for label in known.get(bare, ())} | GIVEN
    chosen = re.findall(r"(\w+)(?:=~|!~|!=|=)\"", expression)
    grouped = [each for group in re.findall(r"\b(?:by|on) \(([\w, ]+)\)", expression) for each in group.split(", ")]
    return unknown | ({*chosen, *grouped} - labels)


def test_alerts_and_figures_speak_of_metrics_and_labels_that_there_are() -> None:
    """A rule on a metric that was renamed would never fire, and nobody would know."""
    assert strangers('sum by (lane, shop) (waypost_gone_total{app="x",cause="y"})') == {
        "waypost_gone_total", "shop", "app", "cause", "lane"
    }  # fmt: skip
    for expression in (*RECORDED.values(), *(alert.expression for alert in ALERTS)):
        assert strangers(expression) == set(), expression


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_what_an_alert_says_has_labels_that_it_has(alert: Alert) -> None:
    names = _NAME.findall(alert.expression)
    labels = {label for name in names for label in (LABELS | BESIDE).get(name.removesuffix("_count"), ())}
    assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= labels | {"instance"}
