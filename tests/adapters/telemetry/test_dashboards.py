"""The dashboards for Grafana: every expression is one of Prometheus's and names what there is."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.observability.files import GRAFANA
from tests.adapters.telemetry.test_alert_rules import promtool, strangers

DASHBOARDS: dict[str, Any] = {file.stem: json.loads(file.read_text()) for file in sorted(GRAFANA.glob("*.json"))}
EXPRESSIONS = [
    target["expr"]
    for dashboard in DASHBOARDS.values()
    for panel in dashboard["panels"]
    for target in panel["targets"]
]  # fmt: skip


def test_every_expression_is_one(tmp_path: Path) -> None:
    """Read by promtool as rules; what Grafana puts in is a span of time and an app."""
    rules = [
        {"record": f"drawn:{n}", "expr": each.replace("$__rate_interval", "5m").replace("$app", "demo")}
        for n, each in enumerate(EXPRESSIONS)
    ]
    (tmp_path / "drawn.yaml").write_text(yaml.safe_dump({"groups": [{"name": "drawn", "rules": rules}]}))
    promtool("check", "rules", tmp_path / "drawn.yaml")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_names_metrics_and_labels_that_there_are(expression: str) -> None:
    assert strangers(expression) == set()


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_whole(name: str) -> None:
    """It has a name of its own, each panel a number, a place that no other has, a unit, and a name for each line."""
    dashboard = DASHBOARDS[name]
    assert dashboard["uid"] == name
    panels = dashboard["panels"]
    assert [panel["id"] for panel in panels] == [*range(1, len(panels) + 1)]
    taken = Counter(
        cell
        for at in (panel["gridPos"] for panel in panels)
        for cell in product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"]))
    )
    assert (max(taken.values()), max(x for x, _ in taken) < 24) == (1, True)
    variables = {f"${each['name']}" for each in dashboard["templating"]["list"]}
    assert variables == {"$datasource", "$app"}
    for panel in panels:
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_the_shipped_prometheus_loads_the_rules_and_names_the_job_that_they_look_for() -> None:
    file = GRAFANA.parent / "prometheus" / "prometheus.yaml"
    promtool("check", "config", file)
    assert [job["job_name"] for job in yaml.safe_load(file.read_text())["scrape_configs"]] == ["waypost"]
