"""The files that are written: their places and their texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import yaml

from scripts.observability.alerts import ALERTS, Alert
from scripts.observability.dashboards import DASHBOARDS, written
from scripts.observability.figures import FIGURES

ROOT: Final = Path(__file__).resolve().parent.parent.parent
RULES: Final = ROOT / "deploy" / "prometheus" / "alerts.yaml"
CHARTED: Final = ROOT / "deploy" / "helm" / "waypost" / "files" / "alerts.yaml"
"""The same rules where Helm finds them: a chart has no files of others."""
GRAFANA: Final = ROOT / "deploy" / "grafana"
_HEAD: Final = """\
# Rules for Prometheus (rule_files), written by `python -m scripts.observability`.
# docs/telemetry.md explains the metrics, docs/runbook.md says what to do about each alert.
"""


def files() -> dict[Path, str]:
    """Give the text of each file."""
    drawn = {GRAFANA / f"{each.uid}.json": json.dumps(written(each), indent=1) + "\n" for each in DASHBOARDS}
    return {RULES: rules(), CHARTED: rules(), **drawn}


def rules() -> str:
    """Write the rules as Prometheus reads them: figures first, which alerts and dashboards use."""
    figures = [{"record": name, "expr": expression} for name, expression in FIGURES.items()]
    groups = [
        {"name": "waypost-figures", "rules": figures},
        {"name": "waypost", "rules": [_rule(alert) for alert in ALERTS]},
    ]
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, allow_unicode=True, width=1_000)


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **({"for": alert.lasts} if alert.lasts else {}),
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook": f"docs/runbook.md#{alert.name.lower()}"},
    }
