"""Settings of the dashboard."""

from __future__ import annotations

from msgspec import Struct


class DashboardSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the pages under `/dashboard`."""

    enabled: bool = True
    """Whether they are served: without a login only where `listen` is the loopback."""
    accounts: bool = False
    """Whether people log in, with accounts that `waypost accounts` makes; then pages are served on every address."""
