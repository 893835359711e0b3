"""The hot routes: submissions, whose answers bypass the framework, and ASGI too where a request comes whole."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from waypost.domain import api_key
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.entrypoints.access import SENDS, admit
from waypost.entrypoints.limits import Visit
from waypost.entrypoints.rest.answers import JSON_TYPE, encode
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.body_reader import check_type
from waypost.entrypoints.rest.compat import notify
from waypost.entrypoints.rest.exchange import CLOSES, Exchange, Headers
from waypost.entrypoints.rest.letting_in import let_in, presented_in, values
from waypost.entrypoints.rest.settings import RestSettings
from waypost.entrypoints.rest.submitting import submit_batch, submit_one
from waypost.entrypoints.rest.whole_request import WholeRequest
from waypost.pipeline.intake import Caller
from waypost.telemetry import Metric, Telemetry
from waypost.telemetry.tracing import TRACEPARENT

Submit = Callable[[Api, Caller, str | None, bytes], Awaitable[tuple[int, Struct]]]

LARGE: Final = frozenset({"/v1/notifications/batch", "/v1/bulk"})
"""Paths whose bodies may be as large as a batch."""
_KNOWN: Final = "known"


def hot_routes(settings: RestSettings) -> dict[str, Submit]:
    """Return the paths whose POST bypasses Litestar: three times the requests for the same answers."""
    routes: dict[str, Submit] = {"/v1/notifications": submit_one, "/v1/notifications/batch": submit_batch}
    return routes | ({notify.PATH: notify.submit_notify} if settings.serve_notify else {})


def shutting_down() -> Unavailable:
    """Build the error that a process on its way out gives to callers."""
    return Unavailable("shutting down; another worker or a later try will take it", ErrorCode.SHUTTING_DOWN)


def placed(api: Api, caller: Caller, headers: Iterable[tuple[bytes, bytes]]) -> Caller:
    """Return *caller*, with the place in their trace that the request comes from, where requests are traced."""
    said = [] if api.intake.tracing is None else values(headers, TRACEPARENT)
    return structs.replace(caller, trace=said[0]) if len(said) == 1 else caller


def key_in(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Find the idempotency key of a request."""
    for name, value in headers:
        if name == b"idempotency-key":
            return value.decode("latin-1")
    return None


class WholeRequests:
    """The answers to whole requests of hot routes (fulfils rest.whole_request.HotRoutes).

    Each is asked what the request handler asks, in the same order, and answered alike.
    """

    def __init__(self, api: Api, routes: Mapping[str, Submit]) -> None:
        self._api = api
        self._routes = routes
        self._counts = _Counts(api.telemetry)
        large, usual = api.settings.batch_limit_bytes, api.settings.body_limit_bytes
        self.limits = {path.encode(): large if path in LARGE else usual for path in routes}

    async def answer(self, request: WholeRequest) -> None:
        """See HotRoutes."""
        try:
            await _WholeExchange(self._api, request, self._counts).run(self._answer)
        finally:
            request.give_up()

    async def _answer(self, exchange: _WholeExchange) -> None:
        request, api = exchange.request, self._api
        caller = await self._let_in(request, exchange.route)
        request.vouch()
        admit(caller, SENDS)
        if api.draining():
            raise shutting_down()
        exchange.body_read = True
        if request.body:
            check_type(request.fields)
        api.intake.shed(caller.app)
        key = request.fields.get(b"idempotency-key")
        sender = caller if api.intake.tracing is None else placed(api, caller, request.headers)
        submit = self._routes[exchange.route]
        status, answer = await submit(api, sender, None if key is None else key.decode("latin-1"), request.body)
        await exchange.answer(status, encode(answer), JSON_TYPE)

    async def _let_in(self, request: WholeRequest, path: str) -> Caller:
        """Let the caller in; whom this connection has let in already is looked for by the hash that was made then."""
        api, headers, memory = self._api, request.headers, request.memory
        given, digest = memory.get(_KNOWN, (None, b""))
        is_same = given is not None and given == request.fields.get(b"authorization")
        caller = api.callers.known(digest) if is_same and b"x-api-key" not in request.fields else None
        if caller is not None and api.limits.let_all_in(caller):
            return caller
        if caller is not None:
            visit = Visit(f"POST {path}", request.peer, lambda name: values(headers, name))
            await api.limits.enter(caller, visit, caller.user)
            return caller
        caller = await let_in(api, headers, "POST", path, request.peer)
        if b"authorization" in request.fields:
            memory[_KNOWN] = request.fields[b"authorization"], api_key.hashed(presented_in(headers) or "")
        return caller


class _WholeExchange(Exchange):
    """The exchange of a whole request."""

    def __init__(self, api: Api, request: WholeRequest, counts: _Counts) -> None:
        path = request.url.decode("latin-1")
        scope: dict[str, Any] = {"method": "POST", "path": path, "headers": request.headers}
        super().__init__(api, scope)
        self.request = request
        self.route = path
        self._counts = counts

    async def answer(self, status: int, body: bytes, media_type: str, headers: Headers = ()) -> None:
        """See Exchange; nothing of the body is left to be drained."""
        self._status = status
        fields = b"".join([b"%b: %b\r\n" % field for field in self.fields(body, media_type, headers)])
        await self.request.respond(status, fields, body, closes=CLOSES in headers)

    def count(self, status: str, seconds: float) -> None:
        """See Exchange; what is answered in one turn of the loop is counted together."""
        self._counts.add(self.route, status, seconds)


class _Counts:
    """The counts of answers, told to the metrics once in a turn of the loop: one commit answers many requests."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._answers: list[tuple[str, str, float]] = []

    def add(self, route: str, status: str, seconds: float) -> None:
        """Add an answer."""
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._tell)
        self._answers.append((route, status, seconds))

    def _tell(self) -> None:
        answers, self._answers = self._answers, []
        numbers: defaultdict[tuple[str, str], int] = defaultdict(int)
        spent: defaultdict[str, list[float]] = defaultdict(list)
        for route, status, seconds in answers:
            numbers[route, status] += 1
            spent[route].append(seconds)
        for (route, status), n in numbers.items():
            self._telemetry.count(Metric.REQUESTS, n, route=route, status=status)
        for route, seconds_each in spent.items():
            self._telemetry.observe_all(Metric.REQUEST_SECONDS, seconds_each, route=route)
