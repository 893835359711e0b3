"""The parts that the dashboard adds to a worker: one application under one path, built when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waypost.config import Config
from waypost.domain.time import Instant
from waypost.features.dashboard.admittance import is_served
from waypost.features.dashboard.settings import DashboardSettings
from waypost.features.parts import Ground, Parts
from waypost.pipeline.sweep import PAGE
from waypost.stores.sql.accounts import ACCOUNT, SESSION

if TYPE_CHECKING:
    from litestar.types import ASGIApp

    from waypost.entrypoints.rest.api import Api


def _open(api: Api, ground: Ground, inner: ASGIApp) -> ASGIApp:
    """Build the application; what draws pages is imported no sooner."""
    from waypost.features.dashboard.app import build_dashboard  # noqa: PLC0415 - most workers never need it

    return build_dashboard(api, ground, inner)


def _is_used(config: Config) -> bool:
    return is_served(config, config.features.get("dashboard") or DashboardSettings())


async def _drop(ground: Ground, now: Instant) -> int:
    """Delete a page of sessions that have ended."""
    return await ground.store.accounts.drop(now, PAGE)


PARTS = Parts(tables=(ACCOUNT, SESSION), mounts={"/dashboard": _open}, is_used=_is_used, drops=_drop)
