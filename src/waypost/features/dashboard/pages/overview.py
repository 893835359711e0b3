"""Overview: how much comes in and goes out, how fast, what waits, and whether providers take it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from litestar import Response
from msgspec import Struct

from waypost.domain.balance import SCHEDULED_MOST, Outline
from waypost.domain.notification import Lane
from waypost.features.dashboard.desk import Desk
from waypost.features.dashboard.figures import Samples
from waypost.features.dashboard.handling import shows
from waypost.features.dashboard.providers import P95, providers, samples_of
from waypost.features.dashboard.site import Page
from waypost.telemetry import Metric

_ALERTS: Final = 50


class LaneRow(Struct, frozen=True):
    """A lane as it stands now."""

    name: str
    per_s: float | None
    open: float
    oldest_s: float
    p95_s: float | None


@shows("/overview", every_s=5)
async def overview(desk: Desk) -> Response[bytes]:
    """Show the figures of the app, and of providers for all apps."""
    samples = await samples_of(desk)
    outline, alerts = await asyncio.gather(
        desk.ground.store.balance.outline(desk.app),
        desk.ask("GET", "/v1/alerts", query={"resolved": "false", "limit": _ALERTS}),
    )
    return desk.show(
        "overview.html",
        tiles=_tiles(desk, samples, outline),
        lanes=_lanes(desk, samples),
        providers=providers(desk, samples),
        ended=outline.ended,
        adds_up=samples.now.total(Metric.BALANCE_DIFFERENCE) == 0,
        alerts=len(alerts["items"]),
        more_alerts=alerts["next"] is not None,
        points=msgspec.json.encode(_points(desk, samples)).decode(),
    )


def _tiles(desk: Desk, samples: Samples, outline: Outline) -> list[tuple[str, Any, str]]:
    """List what is said in large: a name, the value, how it is written."""
    app, now = str(desk.app), samples.now
    are_more = outline.scheduled == SCHEDULED_MOST
    oldest = max((value for _, value in now.rows(Metric.OLDEST_NEW, app=app)), default=0.0)
    return [
        ("accepted a second", samples.rate(Metric.ACCEPTED, app=app), "amount"),
        ("finished a second", samples.rate(Metric.FINISHED, app=app), "amount"),
        ("open now", outline.open, "amount"),
        ("of these scheduled" + (", or more" if are_more else ""), outline.scheduled, "amount"),
        ("oldest that waits", oldest, "seconds"),
        ("taken within (p95)", samples.quantile(P95, Metric.DELIVERY_SECONDS), "seconds"),
    ]


def _lanes(desk: Desk, samples: Samples) -> list[LaneRow]:
    app, now = str(desk.app), samples.now
    return [
        LaneRow(
            lane,
            samples.rate(Metric.ACCEPTED, app=app, lane=lane),
            now.total(Metric.OPEN, app=app, lane=lane),
            now.total(Metric.OLDEST_NEW, app=app, lane=lane),
            samples.quantile(P95, Metric.DELIVERY_SECONDS, lane=lane),
        )
        for lane in Lane
    ]


def _points(desk: Desk, samples: Samples) -> dict[str, list[float]]:
    """Return what the graph draws: times, and how much came in and ended in each second."""
    app = str(desk.app)
    came, ended = samples.series(Metric.ACCEPTED, app=app), samples.series(Metric.FINISHED, app=app)
    failed = samples.series(Metric.FINISHED, app=app, status="failed")
    return {
        "at": [at for at, _ in came],
        "accepted": [value for _, value in came],
        "finished": [value for _, value in ended],
        "failed": [value for _, value in failed],
    }


PAGE = Page("overview", "Overview", [overview])
