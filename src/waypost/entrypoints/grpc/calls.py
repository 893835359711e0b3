"""Calls: each is let in and counted, its message read within bounds, and errors are answered as a status."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import grpc
from google.protobuf.message import Message
from msgspec.structs import replace

from waypost.domain.errors import ErrorCode, Fault, InvalidRequest, Unavailable, WaypostError
from waypost.entrypoints.access import Access, admit
from waypost.entrypoints.admission import caller_of
from waypost.entrypoints.callers import presented
from waypost.entrypoints.grpc.api import GrpcApi
from waypost.entrypoints.grpc.refusals import DETAILS_KEY, foreseen, status_of
from waypost.entrypoints.grpc.submissions import parsed
from waypost.entrypoints.limits import Visit
from waypost.entrypoints.request_ids import HEADER, request_id
from waypost.pipeline.intake import Caller
from waypost.telemetry import Event, Metric
from waypost.telemetry.tracing import TRACEPARENT

M = TypeVar("M", bound=Message)

Context = Any
"""A grpc.aio.ServicerContext over bytes: messages are parsed here, so that a malformed one gets a clear status."""


class AuthenticatedCall:
    """A call past authentication."""

    def __init__(self, context: Context, caller: Caller, known: Callable[[], Awaitable[Caller]]) -> None:
        self.caller = caller
        self._context = context
        self._known = known

    async def still(self) -> None:
        """Check that the caller would still be let in, else WaypostError: a stream may outlive its key."""
        self.caller = await self._known()

    async def next(self, kind: type[M], timeout_s: float | None = None) -> M | None:
        """Read the next message; None at the end, a WaypostError where it is too slow or is none."""
        try:
            async with asyncio.timeout(timeout_s):
                raw = await self._context.read()
        except TimeoutError:
            raise WaypostError(f"the message took more than {timeout_s:g} s", ErrorCode.REQUEST_TIMEOUT) from None
        return None if raw is grpc.aio.EOF else parsed(kind, raw)

    async def only(self, kind: type[M], timeout_s: float) -> M:
        """Read the message of a call that has exactly one."""
        message = await self.next(kind, timeout_s)
        if message is None:
            raise InvalidRequest((Fault("", "the call has no message"),))
        return message

    async def write(self, message: Message) -> None:
        """Send a message of a stream; returns when there is room for the next."""
        await self._context.write(message.SerializeToString())

    def said(self, key: str) -> str | None:
        """Read the metadata's value under *key*."""
        return _said(self._context, key)


Answer = Callable[[AuthenticatedCall], Awaitable[Message | None]]


class Calls:
    """The calls that are open; it authenticates and counts each."""

    def __init__(self, api: GrpcApi) -> None:
        self._api = api
        self._open = 0

    async def run(self, method: str, answer: Answer, context: Context, access: Access, *, writes: bool) -> bytes | None:
        """Answer the call with *answer*; what that raises becomes a status."""
        clock, telemetry = self._api.intake.clock, self._api.telemetry
        began = clock.monotonic()
        id_ = request_id(_said(context, HEADER))
        context.set_trailing_metadata(((HEADER, id_),))
        self._open += 1
        word = "CANCELLED"
        try:
            message = await answer(await self._let_in(method, context, access, writes))
            word = "OK"
            return None if message is None else message.SerializeToString()
        except grpc.aio.InternalError:  # the caller is gone, in the middle of a message
            raise asyncio.CancelledError from None
        except Exception as error:  # noqa: BLE001 - the last resort: whatever it is, the caller gets an answer
            if foreseen(error) is None:
                self._report(method, error, id_)
            status = status_of(error)
            code = _CODES[status.code]
            word = code.name
            await context.abort(code, status.message, ((DETAILS_KEY, status.SerializeToString()), (HEADER, id_)))
            raise AssertionError("abort raises") from None
        finally:
            self._open -= 1
            telemetry.count(Metric.REQUESTS, route=method, status=word)
            telemetry.observe(Metric.REQUEST_SECONDS, clock.monotonic() - began, route=method)

    async def _let_in(self, method: str, context: Context, access: Access, writes: bool) -> AuthenticatedCall:
        """Authenticate and admit a call, before anything of its message is read."""
        if self._open > self._api.settings.calls_limit:
            raise Unavailable("too many calls are in hand", ErrorCode.BACKLOG_FULL)
        credential = presented(_fields(context))
        visit = Visit(f"gRPC {method.rpartition('/')[2]}", _peer(context), partial(_values, context))
        caller = await caller_of(self._api.callers, self._api.limits, credential, visit)
        await self._api.limits.enter(caller, visit)
        admit(caller, access)
        if writes and self._api.is_draining():
            raise shutting_down()
        if writes:
            self._api.intake.shed(caller.app)
        return AuthenticatedCall(
            context, self._traced(context, caller), partial(self._known, context, credential, access)
        )

    async def _known(self, context: Context, credential: str | None, access: Access) -> Caller:
        caller = await self._api.callers.caller(credential)
        admit(caller, access)
        return self._traced(context, caller)

    def _traced(self, context: Context, caller: Caller) -> Caller:
        """Add the place in the caller's trace, where requests are traced."""
        trace = None if self._api.intake.tracing is None else _said(context, TRACEPARENT)
        return caller if trace is None else replace(caller, trace=trace)

    def _report(self, method: str, error: Exception, id_: str) -> None:
        """Log where an error happened, not its text, which may quote what was sent."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        kind = type(error).__name__
        self._api.telemetry.event(Event.REQUEST_FAILED, route=method, error=kind, place=place, request_id=id_)


def shutting_down() -> Unavailable:
    """Build the error that a process on its way out gives to callers."""
    return Unavailable("shutting down; another worker or a later try will take it", ErrorCode.SHUTTING_DOWN)


_CODES = {code.value[0]: code for code in grpc.StatusCode}


def _peer(context: Context) -> str:
    """Read the address in a name such as ``ipv4:127.0.0.1:50123`` or ``ipv6:%5B::1%5D:50123``."""
    kind, _, address = unquote(context.peer() or "").partition(":")
    return address if kind in ("ipv4", "ipv6") else ""


def _values(context: Context, key: str) -> list[str]:
    return [value for name, value in _fields(context) if name == key]


def _said(context: Context, key: str) -> str | None:
    return next((value for name, value in _fields(context) if name == key), None)


def _fields(context: Context) -> Iterator[tuple[str, str]]:
    for name, value in context.invocation_metadata() or ():
        yield name, value if isinstance(value, str) else value.decode("latin-1")
