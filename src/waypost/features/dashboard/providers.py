"""How the providers of an app answer, out of the metrics of all workers."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from waypost.features.dashboard.desk import Desk
from waypost.features.dashboard.figures import Samples, parse
from waypost.telemetry import Metric

P95: Final = 0.95


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


async def samples_of(desk: Desk) -> Samples:
    """Take a sample now, and return it with those before."""
    memory = desk.site.memory
    samples: Samples = memory.setdefault(Samples, Samples())
    text = await asyncio.to_thread(desk.api.metrics)
    samples.add(parse(text.decode(), desk.api.clock.now() / 1_000))
    return samples


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
                samples.quantile(P95, Metric.PROVIDER_SECONDS, provider=name),
                in_flight.get(credential, 0),
                breakers.get(credential, 0) > 0,
            )
        )
    return rows


def _own(desk: Desk, credentials: dict[str, float]) -> list[str]:
    mine = f"{desk.app}/"
    return [name.removeprefix(mine) for name in credentials if name.startswith(mine)]
