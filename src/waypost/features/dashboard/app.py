"""The application under ``/dashboard``: its routes, its files, and what it says where something is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from litestar import Response, get
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from waypost.domain.errors import NotFound
from waypost.entrypoints.rest.answers import speaks
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.app import Application
from waypost.entrypoints.rest.problems import headers_of, problem_of
from waypost.entrypoints.rest.router_errors import foreseen_error
from waypost.features.dashboard.desk import FOLDER, Asked, answer_html, redirect, site_of
from waypost.features.dashboard.gate import Gate, LocalGate, NotInvited
from waypost.features.dashboard.invitations import Invitations
from waypost.features.dashboard.login import HANDLERS, AccountGate, NotLoggedIn, login_address
from waypost.features.dashboard.pages import PAGES
from waypost.features.dashboard.rendering import STATIC, render
from waypost.features.dashboard.site import Site
from waypost.features.parts import Ground
from waypost.stores.sql.location import run_dir_of_store

_TYPES: Final = {"js": "text/javascript", "css": "text/css"}
_FILES: Final = frozenset({"page.js", "page.css", "uplot.js", "uplot.css", "charts.js", "pieces.css"})
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "Cookie, Accept, Sec-Fetch-Site",
}


def build_dashboard(api: Api, ground: Ground, inner: ASGIApp) -> ASGIApp:
    """Build the application over the API that is *inner*."""
    public = ground.config.rest.public_url or ""
    is_secure = ground.config.rest.tls is not None or public.startswith("https://")
    site, has_login = Site(api, ground, inner, PAGES, is_secure, {}), ground.settings.has_login
    gate = AccountGate() if has_login else LocalGate(Invitations(run_dir_of_store(ground.config.store)))
    pages = [handler for page in PAGES for handler in page.handlers]
    return Application(
        route_handlers=[front, static, *(HANDLERS if has_login else ()), *by_provider(ground), *pages],
        openapi_config=None,
        logging_config=None,
        exception_handlers={Exception: _failed},
        after_request=_guarded,
        state=State({"api": api, "site": site, "gate": gate}, deep_copy=False),
    )


def by_provider(ground: Ground) -> Sequence[HTTPRouteHandler]:
    """List the handlers of a login by a provider, where there is one."""
    if ground.settings.oidc is None:
        return ()
    from waypost.features.dashboard.oidc_login import HANDLERS as OIDC  # noqa: PLC0415 - its client, where needed

    return OIDC


@get(FOLDER)
async def front(request: Asked) -> Response[bytes]:
    """Lead to the first page of the first app; by a link, let its browser in first."""
    gate: Gate = request.app.state.gate
    if (entered := await gate.enter(request)) is not None:
        return entered
    await gate.operator(request)
    site = site_of(request)
    return redirect(f"{FOLDER}/{site.apps[0]}/{site.pages[0].name}")


@get(f"{FOLDER}/-/static/{{name:str}}", opt=speaks({}, None))
async def static(name: FromPath[str]) -> Response[bytes]:
    """Return a file of the pages."""
    if name not in _FILES:
        raise NotFound("no such file")
    kept = {"cache-control": "max-age=31536000, immutable"}
    return Response(_read(name), media_type=_TYPES[name.rpartition(".")[2]], headers=kept)


@cache
def _read(name: str) -> bytes:
    return (STATIC / name).read_bytes()


def _guarded(response: Response[Any]) -> Response[Any]:
    """Say to the browser what it may do with what it gets."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _failed(request: Asked, error: Exception) -> Response[bytes]:
    """Say on a page what is wrong; what nobody foresaw is for the request handler."""
    is_nowhere = isinstance(error, NotFoundException)
    foreseen = NotFound("there is no page at this address") if is_nowhere else foreseen_error(error)
    if foreseen is None:
        raise error
    if isinstance(foreseen, NotLoggedIn) and request.method == "GET":
        return _guarded(redirect(login_address(request)))
    problem = problem_of(foreseen)
    page = "uninvited.html" if isinstance(foreseen, NotInvited) else "problem.html"
    response = answer_html(render(page, {"problem": problem, "home": FOLDER}), problem.status)
    for name, value in headers_of(foreseen, problem):
        if name != "www-authenticate":
            response.headers[name] = value
    return _guarded(response)
