"""Settings of analytics."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.config import Config


class AnalyticsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of what is counted and for how long."""

    enabled: bool = False
    """Whether what becomes of notifications is counted. The app's own events are counted anyway."""
    user_events: tuple[str, ...] = ()
    """The events that end users may report with tokens of their own; backends report any."""
    days: Annotated[int, Meta(ge=7, le=3_660)] = 400
    """Days for which counts are kept."""


def is_enabled(config: Config) -> bool:
    """Tell whether what becomes of notifications is counted."""
    settings = config.features.get("analytics")
    return isinstance(settings, AnalyticsSettings) and settings.enabled
