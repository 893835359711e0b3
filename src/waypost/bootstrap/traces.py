"""Traces, where the configuration says where they go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from waypost.config import Config
from waypost.telemetry import Telemetry
from waypost.telemetry.tracing import Tracing


@asynccontextmanager
async def opened_tracing(config: Config, telemetry: Telemetry) -> AsyncIterator[Tracing | None]:
    """Open what records spans, and export the last of them in the end; None where nothing is traced."""
    if config.traces is None:
        yield None
        return
    from waypost.adapters.otel.tracing import OtelTracing  # noqa: PLC0415 - its SDK is an optional extra

    tracing = OtelTracing(config.traces, telemetry)
    try:
        yield tracing
    finally:
        await tracing.close()
