"""The pages, in the order of the menu; ``handling`` says how one is added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.features.dashboard.pages import (
    access,
    alerts,
    analytics,
    campaigns,
    events,
    failed,
    overview,
    providers,
    settings,
    users,
)
from waypost.features.dashboard.site import Page

PAGES: Final[Sequence[Page]] = (
    overview.PAGE,
    events.PAGE,
    failed.PAGE,
    alerts.PAGE,
    analytics.PAGE,
    users.PAGE,
    campaigns.PAGE,
    providers.PAGE,
    access.PAGE,
    settings.PAGE,
)
