"""Settings of traces."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class TraceSettings(Struct, frozen=True, kw_only=True):
    """Settings of traces; see docs/telemetry.md."""

    to: Annotated[str, Meta(pattern=r"^https?://[^\s@]+$")]
    """The collector's whole OTLP/HTTP address, such as `http://localhost:4318/v1/traces`."""
    sample: Annotated[float, Meta(ge=0, le=1)] = 0.01
    """The share of requests that is traced where the caller sends no `traceparent`; else that decides."""
