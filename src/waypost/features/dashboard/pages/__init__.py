"""The pages, in the order of the menu; ``handling`` says how one is added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.features.dashboard.pages import (
    access,
    alerts,
    analytics,
    audiences,
    campaigns,
    events,
    failed,
    jobs,
    overview,
    providers,
    settings,
    templates,
    users,
)
from waypost.features.dashboard.site import Page

PAGES: Final[Sequence[Page]] = (
    overview.PAGE,
    events.PAGE,
    failed.PAGE,
    alerts.PAGE,
    users.PAGE,
    campaigns.PAGE,
    audiences.PAGE,
    templates.PAGE,
    jobs.PAGE,
    analytics.PAGE,
    providers.PAGE,
    access.PAGE,
    settings.PAGE,
)
