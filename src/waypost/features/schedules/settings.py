"""Settings of schedules."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ScheduleSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of what is submitted again and again."""

    grace_s: Annotated[int, Meta(ge=1, le=72_000)] = 3_600
    """Seconds after which a time that nobody was there for counts as missed; of several the latest is made up for."""
