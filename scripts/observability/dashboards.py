"""The dashboards of Grafana: what each panel draws, and where it stands."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from scripts.observability import figures
from scripts.observability.figures import of
from waypost.telemetry import Metric

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_EVERY: Final = "[$__rate_interval]"
_COLUMNS: Final = 24
_HEIGHT: Final = 8


class Panel(NamedTuple):
    """A graph: lines by expression, each with what names it."""

    title: str
    unit: str
    lines: dict[str, str]
    """What names a line, by its expression."""
    width: int = 12


class Dashboard(NamedTuple):
    """A page of panels, from left to right and from top to bottom."""

    uid: str
    title: str
    panels: tuple[Panel, ...]


def _rate(metric: Metric, by: str, labels: str = "") -> str:
    return f"sum by ({by}) (rate({of(metric)}{labels}{_EVERY}))"


def _p95(metric: Metric, by: str = "") -> str:
    buckets = f"rate({of(metric, '_bucket')}{_EVERY})"
    return f"histogram_quantile(0.95, sum by ({f'{by}, le' if by else 'le'}) ({buckets}))"


_APP: Final = '{app=~"$app"}'
_RETRIES: Final = f"max by (lane, place) ({of(Metric.OPEN_DELIVERIES)})"

DASHBOARDS: Final = (
    Dashboard(
        "waypost-delivery",
        "Waypost: delivery",
        (
            Panel("Success of attempts", "percentunit", {f"{figures.SUCCESS}{_APP}": "{{app}} {{lane}}"}),
            Panel("Sent", "ops", {f"{figures.SENT}{_APP}": "{{app}} {{lane}}"}),
            Panel("Errors, share of attempts", "percentunit", {f"{figures.FAILURES}{_APP}": "{{provider}} {{code}}"}),
            Panel("Finished", "ops", {_rate(Metric.FINISHED, "status", _APP): "{{status}}"}),
            Panel(
                "Time to delivery",
                "s",
                {figures.DELIVERY_S: "average {{lane}}", figures.DELIVERY_P95_S: "p95 {{lane}}"},
            ),
            Panel(
                "Oldest without a first attempt",
                "s",
                {f"max by (lane, app) ({of(Metric.OLDEST_NEW)}{_APP})": "{{app}} {{lane}}"},
            ),
            Panel("Queue", "short", {f"sum by (lane) ({of(Metric.DEPTH)})": "{{lane}}"}),
            Panel("Open notifications", "short", {f"max by (lane, app) ({of(Metric.OPEN)}{_APP})": "{{app}} {{lane}}"}),
            Panel("Waiting for another attempt, parked, under way", "short", {_RETRIES: "{{lane}} {{place}}"}),
            Panel("Taken from the queue", "ops", {figures.WORKED: "{{instance}} {{lane}}"}),
            Panel("Settled", "ops", {_rate(Metric.SETTLED, "settlement", _APP): "{{settlement}}"}),
            Panel("Delivered, read, opened, acted on", "ops", {_rate(Metric.EVENTS, "event", _APP): "{{event}}"}),
            Panel("Balance: what is off", "short", {f"max by (line) ({of(Metric.BALANCE_DIFFERENCE)})": "{{line}}"}),
        ),
    ),
    Dashboard(
        "waypost-intake",
        "Waypost: intake",
        (
            Panel("Accepted", "ops", {_rate(Metric.ACCEPTED, "app, lane", _APP): "{{app}} {{lane}}"}),
            Panel(
                "Not accepted",
                "ops",
                {
                    _rate(Metric.REFUSED, "code", _APP): "refused {{code}}",
                    _rate(Metric.DEDUPLICATED, "app", _APP): "duplicates {{app}}",
                    _rate(Metric.SHED, "cause", _APP): "shed {{cause}}",
                    _rate(Metric.LIMITED, "limit", _APP): "limited {{limit}}",
                },
            ),
            Panel("Requests", "reqps", {_rate(Metric.REQUESTS, "status"): "{{status}}"}),
            Panel("Time of answers, p95", "s", {figures.API_P95_S: "{{route}}"}),
            Panel("From a stream", "ops", {_rate(Metric.SOURCE_TAKEN, "source, result"): "{{source}} {{result}}"}),
            Panel(
                "Waiting in streams",
                "short",
                {
                    f"sum by (source) ({of(Metric.SOURCE_WAITING)})": "unread {{source}}",
                    f"sum by (source) ({of(Metric.SOURCE_HELD)})": "held {{source}}",
                },
            ),
            Panel("Live connections", "short", {f"sum by (instance) ({of(Metric.LIVE_CONNECTIONS)})": "{{instance}}"}),
            Panel(
                "Devices of a user",
                "short",
                {f"max by (app, of) ({of(Metric.DEVICES_PER_USER)}{_APP})": "{{app}} {{of}}"},
            ),
        ),
    ),
    Dashboard(
        "waypost-providers",
        "Waypost: providers",
        (
            Panel("Attempts", "ops", {_rate(Metric.ATTEMPTS, "provider, outcome", _APP): "{{provider}} {{outcome}}"}),
            Panel("Time of a batch, p95", "s", {_p95(Metric.PROVIDER_SECONDS, "provider"): "{{provider}}"}),
            Panel(
                "In flight, and how many may be",
                "short",
                {
                    f"sum by (credential) ({of(Metric.IN_FLIGHT)})": "{{credential}}",
                    f"sum by (credential) ({of(Metric.IN_FLIGHT_LIMIT)})": "limit {{credential}}",
                },
            ),
            Panel(
                "Breakers that are not closed",
                "short",
                {
                    f"sum by (credential) ({of(Metric.BREAKER)})": "{{credential}}",
                    f"sum by (credential) ({of(Metric.SCOPES)})": "parts of {{credential}}",
                },
            ),
            Panel(
                "Refusals of credentials",
                "ops",
                {_rate(Metric.DENIED, "credential, reach"): "{{credential}} {{reach}}"},
            ),
            Panel("Connections", "short", {f"sum by (credential) ({of(Metric.CONNECTIONS)})": "{{credential}}"}),
            Panel(
                "Credentials end in",
                "s",
                {f"min by (credential) ({of(Metric.CREDENTIAL_ENDS)}) - time()": "{{credential}}"},
            ),
            Panel("Dead tokens", "ops", {f"sum(rate({of(Metric.EVICTED)}{_EVERY}))": "deactivated"}),
        ),
    ),
    Dashboard(
        "waypost-store",
        "Waypost: store and machine",
        (
            Panel("Queries, p95", "s", {figures.QUERY_P95_S: "{{query}}"}),
            Panel("Commits, p95", "s", {_p95(Metric.COMMIT_SECONDS): "commit"}),
            Panel(
                "Connections that read",
                "short",
                {
                    f"sum by (instance, pool) ({of(Metric.STORE_POOL_BUSY)})": "busy {{instance}} {{pool}}",
                    f"sum by (instance, pool) ({of(Metric.STORE_POOL)})": "all {{instance}} {{pool}}",
                    f"sum by (instance, pool) ({of(Metric.STORE_POOL_WAITING)})": "waiting {{instance}} {{pool}}",
                },
            ),
            Panel("Outcomes not written", "short", {f"sum by (instance) ({of(Metric.HELD_OUTCOMES)})": "{{instance}}"}),
            Panel("Free disk", "percentunit", {f"{of(Metric.DISK_FREE)} / {of(Metric.DISK_SIZE)}": "{{instance}}"}),
            Panel("Ledger behind the log", "s", {f"max({of(Metric.LEDGER_BEHIND)})": "age"}),
            Panel("Oldest transaction of the server", "s", {f"max({of(Metric.OLDEST_TRANSACTION)})": "age"}),
            Panel("Shards owned", "short", {f"sum by (instance) ({of(Metric.SHARDS)})": "{{instance}}"}),
        ),
    ),
)
"""The dashboards."""


def written(dashboard: Dashboard) -> dict[str, Any]:
    """Write a dashboard as Grafana imports and provisions it."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["waypost"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "links": [
            {"type": "dashboards", "title": "Waypost", "tags": ["waypost"], "asDropdown": False, "keepTime": True}
        ],
        "annotations": {"list": [_alerts()]},
        "templating": {"list": [_datasource(), _app()]},
        "panels": [_panel(number, panel, place) for number, (panel, place) in enumerate(_placed(dashboard.panels), 1)],
    }


def _placed(panels: tuple[Panel, ...]) -> list[tuple[Panel, dict[str, int]]]:
    """Place panels side by side as long as there is room, then below."""
    placed, x, y = [], 0, 0
    for panel in panels:
        if x + panel.width > _COLUMNS:
            x, y = 0, y + _HEIGHT
        placed.append((panel, {"x": x, "y": y, "w": panel.width, "h": _HEIGHT}))
        x += panel.width
    return placed


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + n), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
        for n, (expression, legend) in enumerate(panel.lines.items())
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": targets,
    }


def _alerts() -> dict[str, Any]:
    """Mark the times at which an alert is raised."""
    return {
        "name": "Alerts",
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": 'group by (alertname) (ALERTS{alertname=~"Waypost.*", alertstate="firing"})',
        "titleFormat": "{{alertname}}",
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1}


def _app() -> dict[str, Any]:
    query = f"label_values({of(Metric.ACCEPTED)}, app)"
    return {
        "name": "app",
        "label": "App",
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": "apps"},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
