"""Overview: how much comes in and goes out, how fast, what waits, and whether providers take it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from litestar import Response
from msgspec import Struct

from waypost.domain.notification import Lane
from waypost.features.dashboard.desk import Desk
from waypost.features.dashboard.figures import Samples, parse
from waypost.features.dashboard.handling import shows
from waypost.features.dashboard.site import Page
from waypost.telemetry import Metric

_ALERTS: Final = 50
_P95: Final = 0.95


class LaneRow(Struct, frozen=True):
    """A lane as it stands now."""

    name: str
    per_s: float | None
    open: float
    oldest_s: float
    p95_s: float | None


class ProviderRow(Struct, frozen=True):
    """A provider as it answers now."""

    name: str
    per_s: float | None
    taken: float
    refused: float
    p95_s: float | None
    in_flight: float
    is_open: bool
    """Whether a breaker keeps deliveries back."""

    @property
    def success(self) -> float | None:
        """The part of all attempts that was taken."""
        tried = self.taken + self.refused
        return self.taken / tried if tried else None


@shows("/overview")
async def overview(desk: Desk) -> Response[bytes]:
    """Show the figures of the app, and of providers for all apps."""
    samples = await samples_of(desk)
    balance, alerts = await asyncio.gather(
        desk.ask("GET", "/v1/balance"),
        desk.ask("GET", "/v1/alerts", query={"resolved": "false", "limit": _ALERTS}),
    )
    return desk.show(
        "overview.html",
        tiles=_tiles(desk, samples, balance["total"]["notifications"]),
        lanes=_lanes(desk, samples),
        providers=providers(desk, samples),
        balance=balance,
        alerts=len(alerts["items"]),
        more_alerts=alerts["next"] is not None,
        points=msgspec.json.encode(_points(desk, samples)).decode(),
    )


async def samples_of(desk: Desk) -> Samples:
    """Take a sample now, and return it with those before."""
    memory = desk.site.memory
    samples: Samples = memory.setdefault(Samples, Samples())
    text = await asyncio.to_thread(desk.api.metrics)
    samples.add(parse(text.decode(), desk.api.clock.now() / 1_000))
    return samples


def _tiles(desk: Desk, samples: Samples, totals: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """List what is said in large: a name, the value, how it is written."""
    app, now = str(desk.app), samples.now
    waiting = totals["waiting"] + totals["processing"]
    oldest = max((value for _, value in now.rows(Metric.OLDEST_NEW, app=app)), default=0.0)
    return [
        ("accepted a second", samples.rate(Metric.ACCEPTED, app=app), "amount"),
        ("finished a second", samples.rate(Metric.FINISHED, app=app), "amount"),
        ("open now", waiting, "amount"),
        ("scheduled", totals["scheduled"], "amount"),
        ("oldest that waits", oldest, "seconds"),
        ("taken within (p95)", samples.quantile(_P95, Metric.DELIVERY_SECONDS), "seconds"),
    ]


def _lanes(desk: Desk, samples: Samples) -> list[LaneRow]:
    app, now = str(desk.app), samples.now
    return [
        LaneRow(
            lane,
            samples.rate(Metric.ACCEPTED, app=app, lane=lane),
            now.total(Metric.OPEN, app=app, lane=lane),
            now.total(Metric.OLDEST_NEW, app=app, lane=lane),
            samples.quantile(_P95, Metric.DELIVERY_SECONDS, lane=lane),
        )
        for lane in Lane
    ]


def providers(desk: Desk, samples: Samples) -> list[ProviderRow]:
    """List the credentials of the app's senders, and how their providers answer."""
    app, now = str(desk.app), samples.now
    breakers = now.by(Metric.BREAKER, "credential")
    in_flight = now.by(Metric.IN_FLIGHT, "credential")
    rows = []
    for name in sorted({*now.by(Metric.ATTEMPTS, "provider", app=app), *_own(desk, breakers)}):
        outcomes = now.by(Metric.ATTEMPTS, "outcome", app=app, provider=name)
        taken = outcomes.pop("taken", 0.0)
        credential = f"{app}/{name}"
        rows.append(
            ProviderRow(
                name,
                samples.rate(Metric.ATTEMPTS, app=app, provider=name),
                taken,
                sum(outcomes.values()),
                samples.quantile(_P95, Metric.PROVIDER_SECONDS, provider=name),
                in_flight.get(credential, 0),
                breakers.get(credential, 0) > 0,
            )
        )
    return rows


def _own(desk: Desk, credentials: dict[str, float]) -> list[str]:
    mine = f"{desk.app}/"
    return [name.removeprefix(mine) for name in credentials if name.startswith(mine)]


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
