"""The handler every request comes through: limits, authentication, body, then the hot route or Litestar."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from msgspec import Struct, structs

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, NotFound, Unavailable
from waypost.domain.ids import UserId
from waypost.domain.scope import Scope as Right
from waypost.entrypoints.access import SENDS, admit
from waypost.entrypoints.admission import caller_of
from waypost.entrypoints.callers import presented
from waypost.entrypoints.limits import Visit
from waypost.entrypoints.request_ids import HEADER, request_id
from waypost.entrypoints.rest.answers import JSON_TYPE, encode
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.body_reader import BodyReader, ClientGone, linger
from waypost.entrypoints.rest.compat import envelope, notify
from waypost.entrypoints.rest.cors import Fields, fields_for, is_preflight
from waypost.entrypoints.rest.parameters import identity_in
from waypost.entrypoints.rest.problems import PROBLEM_TYPE, RequestRefused, encode_problem, headers_of, problem_of
from waypost.entrypoints.rest.router_errors import foreseen_error
from waypost.entrypoints.rest.serving import vouch_for
from waypost.entrypoints.rest.submitting import submit_batch, submit_one
from waypost.entrypoints.rest.taken_bodies import BODY_METHODS, TakenBodies
from waypost.pipeline.intake import Caller
from waypost.telemetry import Event, Metric
from waypost.telemetry.tracing import TRACEPARENT

Submit = Callable[[Api, Caller, str | None, bytes], Awaitable[tuple[int, Struct]]]

_HOT: dict[str, Submit] = {"/v1/notifications": submit_one, "/v1/notifications/batch": submit_batch}
"""Paths whose POST bypasses Litestar: three times the requests for the same answers."""

_REQUEST_ID = HEADER.encode()
OPERATING = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Paths that every process answers, whatever its roles."""

Headers = Sequence[tuple[str, str]]

_LARGE = frozenset({"/v1/notifications/batch", "/v1/bulk"})
"""Paths whose bodies may be as large as a batch."""
_WRITES = BODY_METHODS | {"DELETE"}
_SIGNED = ("/callbacks/", "/p/")
"""The beginnings of paths whose bodies need not be JSON: a provider's report, and the form of a page."""
_SIGNED_LIMIT_BYTES = 64 * 1024
"""The most bytes of these, whose sender is known by a signature over them, or in the path, alone."""
_KEYED = ("/v1/", envelope.PREFIX)
_CREDENTIALS = frozenset({b"authorization", b"x-api-key"})
_ONCE = frozenset({b"idempotency-key", b"content-type"})
"""Fields of which a request has one at most; credentials and the Host have rules of their own."""
_UNROUTED = "unrouted"
ACTING_FOR = "x-waypost-user"


class RequestHandler:
    """The ASGI application; whatever happens inside, a caller gets an answer and never an inner detail."""

    def __init__(self, api: Api, inner: ASGIApp, taken: TakenBodies) -> None:
        settings = api.settings
        self._api = api
        self._inner = inner
        self._taken = taken
        self._bodies = BodyReader(settings)
        self._mounted: dict[str, ASGIApp] = {}
        self._hot = _HOT | ({notify.PATH: notify.submit_notify} if settings.serve_notify else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI; there are no web sockets here."""
        if scope["type"] == ScopeType.HTTP:
            await _Exchange(self._api, scope, receive, send).run(self._answer)

    async def _answer(self, exchange: _Exchange) -> None:
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
            caller = scope["user"] = await self._let_in(scope, method, path)
            if submit is not None:
                admit(caller, SENDS)
            if method in _WRITES and self._api.draining():
                raise Unavailable("shutting down; another worker or a later try will take it", ErrorCode.SHUTTING_DOWN)
        body = b""
        if self._taken.takes(method, path) and not _is_upload(method, path):
            limit = self._limit_of(path)
            any_type = path.startswith(_SIGNED)
            body = await self._bodies.read(scope["headers"], exchange.receive, limit, any_type=any_type)
            exchange.body_read = True
        if submit is not None:
            self._api.intake.shed(scope["user"].app)
            sender = scope["user"] if self._api.intake.tracing is None else _placed(scope)
            status, answer = await submit(self._api, sender, _idempotency_key(scope["headers"]), body)
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

    async def _pass_on(self, exchange: _Exchange, mounted: ASGIApp) -> None:
        """Have a feature's application answer; it knows its callers by itself."""
        scope, body = exchange.scope, b""
        if scope["method"] in _WRITES and self._api.draining():
            raise Unavailable("shutting down; another worker or a later try will take it", ErrorCode.SHUTTING_DOWN)
        if scope["method"] in BODY_METHODS:
            limit = self._api.settings.body_limit_bytes
            body = await self._bodies.read(scope["headers"], exchange.receive, limit, any_type=True)
            exchange.body_read = True
        await mounted(scope, _replaying(body, exchange.receive), exchange.passing)

    async def _let_in(self, scope: Any, method: str, path: str) -> Caller:
        """Authenticate the caller, and count the request for every limit that holds for it."""
        headers, limits = scope["headers"], self._api.limits
        is_users = path.startswith(envelope.PREFIX)
        visit = Visit(f"{method} {path}", (scope["client"] or ("",))[0], partial(_values, headers), is_users)
        caller = await caller_of(self._api.callers, limits, _presented(headers), visit)
        named = _values(headers, ACTING_FOR) if is_users else []
        if len(named) > 1:  # a proxy may have let one of a client's through beside its own
            raise InvalidRequest((Fault("X-Waypost-User", "names two"),))
        user = None
        if method in _WRITES:
            user = caller.user
            if user is None and named and Right.SEND_ANY_USER in caller.scopes:
                with contextlib.suppress(InvalidRequest):  # whose route says so, where it takes the header
                    user = UserId(identity_in(named[0], "X-Waypost-User"))
        await limits.enter(caller, visit, user)
        vouch_for(scope)
        return caller

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
        return settings.batch_limit_bytes if path in _LARGE else settings.body_limit_bytes


class _Exchange:
    """A request and its answer, counted once."""

    def __init__(self, api: Api, scope: Any, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.route = _UNROUTED
        self.body_read = False
        self._api = api
        self._send = send
        self._status = 0

    @cached_property
    def id(self) -> str:
        """The request's id."""
        given = next((value for name, value in self.scope["headers"] if name == _REQUEST_ID), None)
        return request_id(None if given is None else given.decode("latin-1"))

    @cached_property
    def page(self) -> Fields:
        """The fields for a web page of another origin, if it may call."""
        return fields_for(self.scope, self._api.settings.cors_origins)

    @property
    def _always(self) -> Fields:
        return [(_REQUEST_ID, self.id.encode()), *self.page]

    async def run(self, answer: Callable[[_Exchange], Awaitable[None]]) -> None:
        """Answer the request with *answer*; what that raises becomes a problem."""
        began = self._api.clock.monotonic()
        try:
            await answer(self)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - the last resort: whatever it is, the caller gets an answer
            await self._refuse(error)
        route = self.scope.get("path_template") or self.route
        self._api.telemetry.count(Metric.REQUESTS, route=route, status=str(self._status))
        self._api.telemetry.observe(Metric.REQUEST_SECONDS, self._api.clock.monotonic() - began, route=route)

    async def passing(self, message: Message) -> None:
        """Pass an inner application's answer on, noting its status."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._always]
        await self._send(message)

    async def answer(self, status: int, body: bytes, media_type: str, headers: Headers = ()) -> None:
        """Send a whole answer; where it closes the connection, only after what is left of the body was drained."""
        self._status = status
        fields = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
        fields += self._always
        fields += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": fields})
        drains = ("connection", "close") in headers
        await self._send({"type": "http.response.body", "body": body, "more_body": drains})
        if drains:
            await linger(self.receive, self._api.settings.linger_s)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse(self, error: Exception) -> None:
        foreseen = foreseen_error(error)
        if foreseen is None:
            self._report(error)
        problem = problem_of(foreseen or error)
        if self._status:  # too late for another answer: the server closes the connection
            return
        headers = headers_of(foreseen or error, problem)
        unread = self.scope["method"] in BODY_METHODS and not self.body_read
        if unread and ("connection", "close") not in headers:
            headers.append(("connection", "close"))
        is_enveloped = self._api.settings.serve_api and self.scope["path"].startswith(envelope.PREFIX)
        body, media_type = envelope.encode_failed(problem) if is_enveloped else (encode_problem(problem), PROBLEM_TYPE)
        await self.answer(problem.status, body, media_type, headers)

    def _report(self, error: Exception) -> None:
        """Log where an error happened, not its text, which may quote what was sent."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        route = self.scope.get("path_template") or self.route
        place = f"{Path(last.filename).name}:{last.lineno}"
        kind = type(error).__name__
        self._api.telemetry.event(Event.REQUEST_FAILED, route=route, error=kind, place=place, request_id=self.id)


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


def _presented(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Find the key or token of the request."""
    return presented(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in headers if name in _CREDENTIALS
    )


def _values(headers: Iterable[tuple[bytes, bytes]], name: str) -> list[str]:
    wanted = name.encode("latin-1")
    return [value.decode("latin-1") for given, value in headers if given == wanted]


def _placed(scope: Any) -> Caller:
    """Return the caller, with the place in their trace that the request comes from."""
    caller: Caller = scope["user"]
    said = _values(scope["headers"], TRACEPARENT)
    return structs.replace(caller, trace=said[0]) if len(said) == 1 else caller


def _idempotency_key(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"idempotency-key":
            return value.decode("latin-1")
    return None
