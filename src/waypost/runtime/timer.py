"""The pace of the timer."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class TimerSettings(Struct, frozen=True, kw_only=True):
    """The pace at which what is due (retries, scheduled, parked) is released; nothing is ever released early."""

    period_s: Annotated[float, Meta(gt=0, le=3_600)] = 0.05
    """Seconds between two looks for what is due; with nothing to do it looks when something is written, or due."""
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """The most that one look of a worker releases, longest due first."""
