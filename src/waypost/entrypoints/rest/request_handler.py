"""The handler every request comes through: limits, authentication, body, then the hot route or Litestar."""

from __future__ import annotations

from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from waypost.domain.errors import ErrorCode, NotFound
from waypost.entrypoints.access import SENDS, admit
from waypost.entrypoints.rest.answers import JSON_TYPE, encode
from waypost.entrypoints.rest.api import API, Api
from waypost.entrypoints.rest.body_reader import BodyReader
from waypost.entrypoints.rest.compat import envelope
from waypost.entrypoints.rest.cors import is_preflight
from waypost.entrypoints.rest.exchange import AsgiExchange
from waypost.entrypoints.rest.hot_routes import LARGE, WholeRequests, hot_routes, key_in, placed, shutting_down
from waypost.entrypoints.rest.letting_in import WRITES, let_in
from waypost.entrypoints.rest.problems import RequestRefused
from waypost.entrypoints.rest.serving import vouch_for
from waypost.entrypoints.rest.taken_bodies import BODY_METHODS, TakenBodies

OPERATING = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Paths that every process answers, whatever its roles."""

_SIGNED = ("/callbacks/", "/p/")
"""The beginnings of paths whose bodies need not be JSON: a provider's report, and the form of a page."""
_SIGNED_LIMIT_BYTES = 64 * 1024
"""The most bytes of these, whose sender is known by a signature over them, or in the path, alone."""
_KEYED = ("/v1/", envelope.PREFIX)
_ONCE = frozenset({b"idempotency-key", b"content-type"})
"""Fields of which a request has one at most; credentials and the Host have rules of their own."""


class RequestHandler:
    """The ASGI application; whatever happens inside, a caller gets an answer and never an inner detail."""

    def __init__(self, api: Api, inner: ASGIApp, taken: TakenBodies) -> None:
        settings = api.settings
        self._api = api
        self._inner = inner
        self._taken = taken
        self._bodies = BodyReader(settings)
        self._mounted: dict[str, ASGIApp] = {}
        self._hot = hot_routes(settings)
        self.whole: WholeRequests | None = WholeRequests(api, {} if api.operating_only else self._hot)
        """The way around ASGI, for requests of the hot routes that come whole."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI; there are no web sockets here."""
        if scope["type"] == ScopeType.HTTP:
            await AsgiExchange(self._api, scope, receive, send).run(self._answer)

    async def _answer(self, exchange: AsgiExchange) -> None:
        scope: Any = exchange.scope
        method, path = scope["method"], scope["raw_path"].decode("latin-1")
        scope["path"] = path
        self._check_head(scope)
        if is_preflight(scope, exchange.page):
            await exchange.answer(204, b"", "text/plain")
            return
        self._check_path(path)
        if (mounted := self._mounted_at(path)) is not None:
            await self._pass_on(exchange, mounted)
            return
        submit = self._hot.get(path) if method == "POST" and not scope["query_string"] else None
        if submit is not None:
            exchange.route = path
        if path.startswith(_KEYED):
            peer = (scope["client"] or ("",))[0]
            caller = scope["user"] = await let_in(self._api, scope["headers"], method, path, peer)
            vouch_for(scope)
            if submit is not None:
                admit(caller, SENDS)
            if method in WRITES and self._api.draining():
                raise shutting_down()
        body = b""
        if self._taken.takes(method, path) and not _is_upload(method, path):
            limit = self._limit_of(path)
            any_type = path.startswith(_SIGNED)
            body = await self._bodies.read(scope["headers"], exchange.receive, limit, any_type=any_type)
        if submit is not None:
            self._api.intake.shed(scope["user"].app)
            sender = placed(self._api, scope["user"], scope["headers"])
            status, answer = await submit(self._api, sender, key_in(scope["headers"]), body)
            await exchange.answer(status, encode(answer), JSON_TYPE)
        else:
            streams = _is_upload(method, path)
            receive = exchange.receive if streams else _replaying(body, exchange.receive)
            await self._inner(scope, receive, exchange.passing)

    def _check_path(self, path: str) -> None:
        """Raise NotFound for a path with an empty part, and for what this process does not serve."""
        if "//" in path or (path.endswith("/") and path != "/"):  # the router would ignore it, after our checks
            raise NotFound("no such path: a part of it is empty")
        if self._api.operating_only and path not in OPERATING | self._api.also:
            served = ", ".join(["health", "metrics", *sorted(self._api.also)])
            raise RequestRefused(ErrorCode.NOT_FOUND, f"nothing but {served} is served here")

    def _mounted_at(self, path: str) -> ASGIApp | None:
        """Return the application that a feature has for *path*, built when it is first asked for."""
        for below, build in self._api.mounts.items():
            if path == below or path.startswith(below + "/"):
                if below not in self._mounted:
                    self._mounted[below] = build(self._api, self._inner)
                return self._mounted[below]
        return None

    async def _pass_on(self, exchange: AsgiExchange, mounted: ASGIApp) -> None:
        """Have a feature's application answer; it knows its callers by itself."""
        scope, body = exchange.scope, b""
        if scope["method"] in WRITES and self._api.draining():
            raise shutting_down()
        if scope["method"] in BODY_METHODS:
            limit = self._api.settings.body_limit_bytes
            body = await self._bodies.read(scope["headers"], exchange.receive, limit, any_type=True)
        scope[API] = self._api
        await mounted(scope, _replaying(body, exchange.receive), exchange.passing)

    def _check_head(self, scope: Any) -> None:
        """Raise RequestRefused for a head that is too large, or says twice what may be said once."""
        settings, headers = self._api.settings, scope["headers"]
        names = [name for name, _ in headers if name in _ONCE]
        if len(names) > len(set(names)):
            raise RequestRefused(ErrorCode.INVALID_REQUEST, "a field that may come once came twice", closes=True)
        size = sum(len(name) + len(value) + 4 for name, value in headers)
        size += len(scope["raw_path"]) + len(scope["query_string"])
        if len(headers) > settings.headers_limit or size > settings.headers_limit_bytes:
            most = f"at most {settings.headers_limit}, {settings.headers_limit_bytes} bytes"
            why = f"{len(headers)} headers, {size} bytes; {most}"
            raise RequestRefused(ErrorCode.HEADERS_TOO_LARGE, why, closes=True)

    def _limit_of(self, path: str) -> int:
        settings = self._api.settings
        if path.startswith(_SIGNED):
            return _SIGNED_LIMIT_BYTES
        return settings.batch_limit_bytes if path in LARGE else settings.body_limit_bytes


def _is_upload(method: str, path: str) -> bool:
    """Tell whether the body is a list that its route reads as it comes in."""
    if method == "POST":
        return path == "/v1/users"
    return method == "PUT" and path.startswith(("/v1/bulk/", "/v1/campaigns/")) and path.endswith("/recipients")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Build a receive channel that gives a body already read, then what the connection has to say."""
    given = False

    async def replay() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
