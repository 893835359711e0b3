"""Providers: whether each takes what is sent, what keeps deliveries back, and when its credential ends."""

from __future__ import annotations

from litestar import Response
from msgspec import Struct

from waypost.domain.time import SECOND_MS
from waypost.features.dashboard.desk import Desk
from waypost.features.dashboard.figures import Sample
from waypost.features.dashboard.handling import shows
from waypost.features.dashboard.pages.trial import HANDLERS
from waypost.features.dashboard.providers import ProviderRow, providers, samples_of
from waypost.features.dashboard.site import Page
from waypost.telemetry import Metric


class Health(Struct, frozen=True):
    """A provider, and the credential that it is called with."""

    row: ProviderRow
    limit: float
    """Deliveries that may be in flight at once, as its answers allow."""
    connections: float
    scopes: float
    """Topics or push services of it that are held back."""
    denied: float
    ends_at: int | None
    """When its credential ends, milliseconds; None where that is not known."""
    rehearsed_at: int | None
    codes: list[tuple[str, float]]
    """What it answered where it did not take something, the most frequent first."""


@shows("/providers", every_s=5)
async def health(desk: Desk) -> Response[bytes]:
    """Show each provider of the app."""
    samples = await samples_of(desk)
    rows = providers(desk, samples)
    return desk.show("providers.html", providers=[_health(desk, samples.now, row) for row in rows])


def _health(desk: Desk, now: Sample, row: ProviderRow) -> Health:
    credential = f"{desk.app}/{row.name}"
    codes = now.by(Metric.FAILED_ATTEMPTS, "code", app=desk.app, provider=row.name)
    return Health(
        row,
        now.total(Metric.IN_FLIGHT_LIMIT, credential=credential),
        now.total(Metric.CONNECTIONS, credential=credential),
        now.total(Metric.SCOPES, credential=credential),
        now.total(Metric.DENIED, credential=credential),
        _moment(now, Metric.CREDENTIAL_ENDS, credential),
        _moment(now, Metric.CREDENTIAL_REHEARSED, credential),
        sorted(codes.items(), key=lambda each: (-each[1], each[0]))[:5],
    )


def _moment(now: Sample, metric: Metric, credential: str) -> int | None:
    """Return the earliest time that any worker tells."""
    found = [value for _, value in now.rows(metric, credential=credential) if value > 0]
    return round(min(found) * SECOND_MS) if found else None


PAGE = Page("providers", "Providers", [health, *HANDLERS])
