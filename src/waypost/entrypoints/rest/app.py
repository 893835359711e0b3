"""The REST application, put together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NoReturn

from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.handlers import HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import ASGIApp, Receive, Send

from waypost.domain.channel import Channel
from waypost.domain.device import Platform
from waypost.entrypoints.access import admit
from waypost.entrypoints.rest import (
    dead_routes,
    dedup_routes,
    device_routes,
    explain_routes,
    notification_routes,
    operating_routes,
    outbox_routes,
    reference,
)
from waypost.entrypoints.rest.answers import spoken_of
from waypost.entrypoints.rest.api import API, DOCUMENT, Api
from waypost.entrypoints.rest.compat import notify, user_notifications, user_tokens
from waypost.entrypoints.rest.openapi import specification
from waypost.entrypoints.rest.operating_routes import metrics
from waypost.entrypoints.rest.parameters import refuse_unknown_parameters
from waypost.entrypoints.rest.request_handler import RequestHandler
from waypost.entrypoints.rest.settings import RestSettings
from waypost.entrypoints.rest.taken_bodies import TakenBodies
from waypost.pipeline.intake import Caller

EVERYTHING = RestSettings()

ROUTES: list[HTTPRouteHandler] = [
    *notification_routes.ROUTES,
    *explain_routes.ROUTES,
    *dedup_routes.ROUTES,
    *dead_routes.ROUTES,
    *device_routes.ROUTES,
    *outbox_routes.ROUTES,
    *operating_routes.ROUTES,
]
"""The routes of Waypost's own API that no feature brings."""


def build_app(api: Api) -> ASGIApp:
    """Build the ASGI application over *api*; it holds nothing that needs closing."""
    also = [each for each in api.routes if each.paths <= api.also]
    routes = [*operating_routes.ROUTES, *also] if api.operating_only else served_routes(api.settings, api.routes)
    shows = api.settings.serve_reference and not api.operating_only
    inner = _application((*routes, *(reference.ROUTES if shows else ())))
    document = partial(openapi_document, api.platforms, api.channels, api.settings, api.routes, tuple(api.tags.items()))

    async def ask(scope: Any, receive: Receive, send: Send) -> None:
        scope[API], scope[DOCUMENT] = api, document
        await inner(scope, receive, send)

    return RequestHandler(api, ask, TakenBodies(routes))


@cache
def _application(routes: tuple[HTTPRouteHandler, ...]) -> Application:
    """Build what finds the route of a request; making it takes long, and whose API it is each request says itself."""
    return Application(
        route_handlers=routes,
        openapi_config=None,
        logging_config=None,
        exception_handlers={Exception: _raise},
        guards=[admit_caller],
        before_request=refuse_unknown_parameters,
    )


class Application(Litestar):
    """Litestar without plugins for models that no route of ours has.

    Where pydantic is installed beside Waypost, Litestar loads it, which takes a fifth of a worker's start.
    """

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


@cache
def openapi_document(
    platforms: Sequence[Platform],
    channels: Sequence[Channel],
    settings: RestSettings = EVERYTHING,
    beside: tuple[HTTPRouteHandler, ...] = (),
    tags: tuple[tuple[str, str], ...] = (),
) -> bytes:
    """Build the OpenAPI document as served; the same for every application with the same senders and settings.

    Made when it is first asked for: that takes a third as long as all else of a worker's start.
    """
    return specification(served_routes(settings, beside), {"Platform": platforms, "Channel": channels}, dict(tags))


def served_routes(
    settings: RestSettings = EVERYTHING, beside: Sequence[HTTPRouteHandler] = ()
) -> list[HTTPRouteHandler]:
    """List the routes: our own API, features' routes *beside* it, and other APIs' shapes that are not switched off."""
    own = ROUTES if settings.operating_listen is None else [each for each in ROUTES if each is not metrics]
    under_api = (*user_notifications.ROUTES, *user_tokens.ROUTES) if settings.serve_api else ()
    return [*own, *beside, *(notify.ROUTES if settings.serve_notify else ()), *under_api]


def admit_caller(call: ASGIConnection[Any, Caller, Any, Any], handler: BaseRouteHandler) -> None:
    """Check who may call the route that was found; Forbidden, and a KeyError where no caller was authenticated."""
    access = spoken_of(handler).access
    if access is not None:
        admit(call.scope["user"], access)


def _raise(_request: object, error: Exception) -> NoReturn:
    """Raise every error again: the request handler answers all of them alike."""
    raise error
