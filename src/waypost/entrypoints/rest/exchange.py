"""Exchanges: a request and its answer, counted once. Whatever happens, a caller gets an answer and no inner detail."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from litestar.types import Message, Receive, ReceiveMessage, Send

from waypost.entrypoints.request_ids import HEADER, request_id
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.body_reader import ClientGone, linger
from waypost.entrypoints.rest.compat import envelope
from waypost.entrypoints.rest.cors import Fields, fields_for
from waypost.entrypoints.rest.problems import PROBLEM_TYPE, encode_problem, headers_of, problem_of
from waypost.entrypoints.rest.router_errors import foreseen_error
from waypost.entrypoints.rest.taken_bodies import BODY_METHODS
from waypost.telemetry import Event, Metric

Headers = Sequence[tuple[str, str]]
E = TypeVar("E", bound="Exchange")

CLOSES: Final = ("connection", "close")
_REQUEST_ID: Final = HEADER.encode()
_UNROUTED: Final = "unrouted"


class Exchange:
    """A request and its answer."""

    def __init__(self, api: Api, scope: Mapping[str, Any]) -> None:
        self.scope: Any = scope
        """The request as far as it is known, in the form of ASGI."""
        self.route = _UNROUTED
        self.body_read = False
        """Whether nothing of the body is still to come."""
        self._api = api
        self._status = 0
        self._id: str | None = None

    async def answer(self, status: int, body: bytes, media_type: str, headers: Headers = ()) -> None:
        """Send a whole answer."""
        raise NotImplementedError

    @property
    def id(self) -> str:
        """The request's id."""
        if self._id is None:
            given = next((value for name, value in self.scope["headers"] if name == _REQUEST_ID), None)
            self._id = request_id(None if given is None else given.decode("latin-1"))
        return self._id

    @property
    def page(self) -> Fields:
        """The fields for a web page of another origin, if it may call."""
        origins = self._api.settings.cors_origins
        return fields_for(self.scope, origins) if origins else []

    async def run(self: E, answer: Callable[[E], Awaitable[None]]) -> None:
        """Answer the request with *answer*; what that raises becomes a problem."""
        began = self._api.clock.monotonic()
        try:
            await answer(self)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - the last resort: whatever it is, the caller gets an answer
            await self._refuse(error)
        self.count(str(self._status), self._api.clock.monotonic() - began)

    def count(self, status: str, seconds: float) -> None:
        """Count the answer."""
        self._api.telemetry.count(Metric.REQUESTS, route=self.label, status=status)
        self._api.telemetry.observe(Metric.REQUEST_SECONDS, seconds, route=self.label)

    @property
    def label(self) -> str:
        """The route, as metrics and the log name it."""
        label: str = self.scope.get("path_template") or self.route
        return label

    def fields(self, body: bytes, media_type: str, headers: Headers) -> Fields:
        """List the fields of an answer."""
        fields = [(b"content-type", media_type.encode()), (b"content-length", b"%d" % len(body)), *self.always]
        if headers:
            fields += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return fields

    @property
    def always(self) -> Fields:
        """The fields of every answer."""
        return [(_REQUEST_ID, self.id.encode()), *self.page]

    async def _refuse(self, error: Exception) -> None:
        foreseen = foreseen_error(error)
        if foreseen is None:
            self._report(error)
        problem = problem_of(foreseen or error)
        if self._status:  # too late for another answer: the server closes the connection
            return
        headers = headers_of(foreseen or error, problem)
        unread = self.scope["method"] in BODY_METHODS and not self.body_read
        if unread and CLOSES not in headers:
            headers.append(CLOSES)
        is_enveloped = self._api.settings.serve_api and self.scope["path"].startswith(envelope.PREFIX)
        body, media_type = envelope.encode_failed(problem) if is_enveloped else (encode_problem(problem), PROBLEM_TYPE)
        await self.answer(problem.status, body, media_type, headers)

    def _report(self, error: Exception) -> None:
        """Log where an error happened, not its text, which may quote what was sent."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        kind = type(error).__name__
        self._api.telemetry.event(Event.REQUEST_FAILED, route=self.label, error=kind, place=place, request_id=self.id)


class AsgiExchange(Exchange):
    """An exchange by ASGI."""

    def __init__(self, api: Api, scope: Any, receive: Receive, send: Send) -> None:
        super().__init__(api, scope)
        self._receive = receive
        self._send = send

    async def receive(self) -> ReceiveMessage:
        """Take the next part of the request, and note the end of its body."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.body_read = True
        return message

    async def passing(self, message: Message) -> None:
        """Pass an inner application's answer on, noting its status."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self.always]
        await self._send(message)

    async def answer(self, status: int, body: bytes, media_type: str, headers: Headers = ()) -> None:
        """Send a whole answer; where it closes the connection, only after what is left of the body was drained."""
        self._status = status
        fields = self.fields(body, media_type, headers)
        await self._send({"type": "http.response.start", "status": status, "headers": fields})
        drains = CLOSES in headers and not self.body_read
        await self._send({"type": "http.response.body", "body": body, "more_body": drains})
        if drains:
            await linger(self.receive, self._api.settings.linger_s)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
