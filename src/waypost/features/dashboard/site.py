"""The dashboard of one process: what its pages are made of, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from litestar.datastructures import Cookie
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp
from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.entrypoints.rest.api import Api
from waypost.features.dashboard.operators import Right
from waypost.features.parts import Ground


class Page(Struct, frozen=True):
    """A page: its place in the menu, and its handlers (``handling.shows`` and ``handling.acts`` make them)."""

    name: str
    """The first part of its paths."""
    title: str
    handlers: Sequence[HTTPRouteHandler]
    needs: Right = Right.READ
    """What it takes to find it in the menu."""


class Site(Struct, frozen=True):
    """The things that all requests share."""

    api: Api
    ground: Ground
    inner: ASGIApp
    """The API itself, past authentication."""
    pages: Sequence[Page]
    is_secure: bool
    """Whether browsers come by TLS alone."""
    memory: dict[type, Any]
    """What pages remember in this process, by type."""

    @property
    def apps(self) -> Sequence[AppId]:
        """The apps that there are."""
        return sorted(self.ground.config.apps)

    def cookie(
        self, name: str, value: str, max_age: int | None = None, samesite: Literal["lax", "strict"] = "strict"
    ) -> Cookie:
        """Make a cookie that only this dashboard's own pages send."""
        return Cookie(
            key=name,
            value=value,
            path="/dashboard",
            max_age=max_age,
            httponly=True,
            samesite=samesite,
            secure=self.is_secure,
        )
