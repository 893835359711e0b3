"""Figures that operators ask for, each computed from counters by a recording rule (requirements S3-82 to S3-93)."""

from __future__ import annotations

from typing import Final

from waypost.telemetry import Metric


def of(metric: Metric, part: str = "") -> str:
    """Name a metric as Prometheus does; *part* is that of a histogram: ``_bucket``, ``_sum`` or ``_count``."""
    return metric.label + part


_ATTEMPTS: Final = of(Metric.ATTEMPTS)
_FAILED: Final = f'{_ATTEMPTS}{{outcome!="taken"}}'
_DELIVERY: Final = Metric.DELIVERY_SECONDS

SENT: Final = "waypost:sent:rate5m"
SUCCESS: Final = "waypost:success:ratio10m"
FAILURES: Final = "waypost:failures:ratio10m"
DELIVERY_S: Final = "waypost:delivery_seconds:mean5m"
DELIVERY_P95_S: Final = "waypost:delivery_seconds:p95_5m"
WORKED: Final = "waypost:worked:rate1m"
API_P95_S: Final = "waypost:http_request_seconds:p95_5m"
QUERY_P95_S: Final = "waypost:store_seconds:p95_5m"

FIGURES: Final = {
    SENT: f'sum by (app, lane) (rate({of(Metric.SETTLED)}{{settlement="sent"}}[5m]))',
    SUCCESS: (
        f"1 - (sum by (app, lane) (rate({_FAILED}[10m])) or 0 * sum by (app, lane) (rate({_ATTEMPTS}[10m])))"
        f" / sum by (app, lane) (rate({_ATTEMPTS}[10m]))"
    ),
    FAILURES: (
        f"sum by (app, provider, code) (rate({of(Metric.FAILED_ATTEMPTS)}[10m]))"
        f" / on (app, provider) group_left sum by (app, provider) (rate({_ATTEMPTS}[10m]))"
    ),
    DELIVERY_S: (
        f"sum by (lane) (rate({of(_DELIVERY, '_sum')}[5m])) / sum by (lane) (rate({of(_DELIVERY, '_count')}[5m]))"
    ),
    DELIVERY_P95_S: f"histogram_quantile(0.95, sum by (lane, le) (rate({of(_DELIVERY, '_bucket')}[5m])))",
    WORKED: f"sum by (instance, lane) (rate({of(Metric.LEASED)}[1m]))",
    API_P95_S: f"histogram_quantile(0.95, sum by (route, le) (rate({of(Metric.REQUEST_SECONDS, '_bucket')}[5m])))",
    QUERY_P95_S: f"histogram_quantile(0.95, sum by (query, le) (rate({of(Metric.STORE_SECONDS, '_bucket')}[5m])))",
}
"""The expression of each figure, by its name."""
