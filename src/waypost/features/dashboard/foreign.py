"""What a page of somewhere else makes a browser send."""

from __future__ import annotations

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.features.dashboard.admittance import is_cross_site
from waypost.features.dashboard.desk import Asked


def refuse_foreign(request: Asked) -> None:
    """Refuse what a page of somewhere else makes the browser send."""
    if is_cross_site(request.method, request.headers):
        raise WaypostError("another site sent this", ErrorCode.FORBIDDEN)
