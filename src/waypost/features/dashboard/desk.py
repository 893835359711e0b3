"""The desk, at which a handler works: who is there, which app is looked at, the API, and the ways to answer."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from litestar import Request, Response
from litestar.datastructures import Cookie, State
from msgspec import Struct

from waypost.domain.errors import ErrorCode, WaypostError
from waypost.domain.ids import AppId
from waypost.domain.scope import EVERY_SCOPE, Scope
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.recording import record
from waypost.features.dashboard.asking import ask, path_of
from waypost.features.dashboard.operators import Operator, Right
from waypost.features.dashboard.rendering import render
from waypost.features.dashboard.site import Page, Site
from waypost.features.parts import Ground
from waypost.pipeline.intake import Caller
from waypost.ports.audit import Act

Asked = Request[Any, Any, State]
TOKEN: Final = "waypost_csrf"  # noqa: S105 - the name of a cookie
NOTICE: Final = "waypost_notice"
FOLDER: Final = "/dashboard"
_FIELDS_LIMIT: Final = 1_000
_READING: Final = frozenset({Scope.READ})


def site_of(request: Asked) -> Site:
    """Return what all requests share."""
    site: Site = request.app.state.site
    return site


class Asking(Struct, frozen=True):
    """A page that asks before something is done: what will happen, and the button that does it."""

    title: str
    what: Sequence[str]
    """What will happen, a paragraph each."""
    button: str
    action: str
    """The address that is posted to, below the app's."""
    fields: Sequence[tuple[str, str]] = ()
    """What is posted with it."""
    dangerous: bool = False
    """Whether it cannot be undone."""
    back: str = ""
    """The address, below the app's, that *no* leads to; the page's own if empty."""


class Desk:
    """One request of somebody who was let in, and what answers it."""

    def __init__(self, site: Site, request: Asked, operator: Operator, app: AppId, page: Page, needs: Right) -> None:
        self.request = request
        self.operator = operator
        self.app = app
        self.page = page
        self.site = site
        self._needs = needs
        self.caller = Caller(app, operator.caller, EVERY_SCOPE if self._may_act else _READING)

    @property
    def api(self) -> Api:
        """The ports behind the API, for what it has no route for."""
        return self.site.api

    @property
    def ground(self) -> Ground:
        """The stores and settings of the dashboard."""
        return self.site.ground

    @property
    def _may_act(self) -> bool:
        return self.request.method == "GET" or self._needs is not Right.READ

    def may(self, right: Right) -> bool:
        """Tell whether the person has *right*: a page leaves out what they may not do."""
        return self.operator.may(right)

    def part(self, name: str) -> str:
        """Return what stands in the path in place of ``{name}``."""
        return unquote(str(self.request.path_params[name]))

    def given(self, name: str) -> str | None:
        """Return a parameter of the query without spaces around it; None where it is empty."""
        return self.request.query_params.get(name, "").strip() or None

    def choices(self, name: str) -> list[str]:
        """Return every value of a parameter of the query."""
        return [each for each in self.request.query_params.getall(name, []) if each]

    @cached_property
    def form(self) -> Mapping[str, str]:
        """The fields that were posted; the last of each name."""
        return dict(self._fields)

    def posted(self, name: str) -> list[str]:
        """Return every value of a field that was posted."""
        return [value for field, value in self._fields if field == name]

    @cached_property
    def _fields(self) -> list[tuple[str, str]]:
        body: bytes = self.request.scope["state"]["body"]
        try:
            return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_LIMIT)
        except ValueError:
            raise WaypostError("this is no form", ErrorCode.INVALID_REQUEST) from None

    async def ask(
        self, method: str, path: str, *parts: str, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> Any:
        """Call the API for this app in the person's name: ``ask("GET", "/v1/notifications/{}", id)``.

        Handlers that need more than ``Right.READ`` may change things; others get Forbidden from the API itself.
        """
        scope: Any = self.request.scope
        return await ask(self.site.inner, self.caller, scope, method, path_of(path, *parts), query, body)

    async def record(self, act: Act, subjects: Iterable[str]) -> None:
        """Put on record what the API does not, before it is done."""
        scope: Any = self.request.scope
        scope["user"] = self.caller
        await record(self.request, act, subjects)

    def url(self, path: str = "", **query: str | None) -> str:
        """Return the address of *path* of this app."""
        given = {name: value for name, value in query.items() if value}
        return f"{FOLDER}/{quote(self.app, safe='')}{path}" + (f"?{urlencode(given)}" if given else "")

    def onward(self, **query: str | None) -> str:
        """Return the address of this page with some of its parameters changed: for pagers."""
        kept = [(n, v) for n, v in self.request.query_params.multi_items() if n not in query and v]
        kept += [(name, value) for name, value in query.items() if value]
        return f"{self.request.url.path}?{urlencode(kept)}"

    def show(self, template: str, status: int = 200, **values: Any) -> Response[bytes]:
        """Answer with a page."""
        notice = self.request.cookies.get(NOTICE)
        token = self.request.cookies.get(TOKEN) or secrets.token_urlsafe(24)
        common = {"desk": self, "site": self.site, "csrf": token, "notice": notice and unquote(notice), "R": Right}
        response = answer_html(render(template, common | values), status)
        if not self.request.cookies.get(TOKEN):
            response.cookies.append(self.site.cookie(TOKEN, token))
        if notice:
            response.cookies.append(self.site.cookie(NOTICE, "", max_age=0))
        return response

    def confirm(self, asking: Asking) -> Response[bytes]:
        """Ask whether it is meant, saying first what will happen."""
        return self.show("confirm.html", asking=asking)

    def done(self, notice: str, path: str, **query: str | None) -> Response[bytes]:
        """Go to *path* of this app, and say there what was done."""
        return redirect(self.url(path, **query), [self.site.cookie(NOTICE, quote(notice), max_age=60)])


Handler = Callable[[Desk], Awaitable[Response[bytes]]]


def answer_html(text: str, status: int = 200) -> Response[bytes]:
    """Build an answer of HTML."""
    return Response(text.encode(), status_code=status, media_type="text/html")


def redirect(address: str, cookies: Sequence[Cookie] = ()) -> Response[bytes]:
    """Build an answer that leads elsewhere by GET."""
    return Response(b"", status_code=303, headers={"location": address}, cookies=list(cookies))
