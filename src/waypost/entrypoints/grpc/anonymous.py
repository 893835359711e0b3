"""Health and reflection, which ask for no credential: their calls and what they may say are few and short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from waypost.domain.errors import Fault, InvalidRequest
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.entrypoints.grpc.submissions import parsed

M = TypeVar("M", bound=Message)

ASKED_LIMIT_BYTES: Final = 1_024
"""The longest message: the name of a service, a symbol or a file."""
READERS_LIMIT: Final = 16
"""The most messages that are waited for: each may have the size of any message before it can be judged."""

Context = Any
"""A grpc.aio.ServicerContext over bytes."""
_Handler = Callable[[Any, Context], Awaitable[bytes | None]]


class Places:
    """A number of places; past it, who has had one for the longest makes room: it gets a TimeoutError."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: dict[asyncio.Timeout, None] = {}

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place."""
        if len(self._taken) >= self._limit:
            oldest = next(iter(self._taken))
            del self._taken[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        async with asyncio.timeout(None) as told_to_go:
            self._taken[told_to_go] = None
            try:
                yield
            finally:
                self._taken.pop(told_to_go, None)


class AnonymousServices:
    """Health and reflection of *services*."""

    def __init__(self, settings: GrpcSettings, services: tuple[str, ...]) -> None:
        names = (*services, health.SERVICE_NAME, reflection.SERVICE_NAME)
        self.health = health.aio.HealthServicer()
        self._reflection = reflection.aio.ReflectionServicer(names)
        self._timeout_s = settings.message_timeout_s
        self._calls = Places(settings.anonymous_calls_limit)
        self._readers = Places(READERS_LIMIT)

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register the methods."""
        one, many = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        server.add_registered_method_handlers(
            health.SERVICE_NAME,
            {"Check": one(self._placed(self._check)), "Watch": many(self._placed(self._watch))},
        )
        server.add_registered_method_handlers(
            reflection.SERVICE_NAME, {"ServerReflectionInfo": many(self._placed(self._reflect))}
        )

    def _placed(self, answer: Callable[[Context], Awaitable[bytes | None]]) -> _Handler:
        async def answered(_messages: object, context: Context) -> bytes | None:
            try:
                async with self._calls.place():
                    return await answer(context)
            except InvalidRequest as invalid:
                await _end(context, grpc.StatusCode.INVALID_ARGUMENT, str(invalid))
            except TimeoutError:
                await _end(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "others without a credential want the place")

        return answered

    async def _check(self, context: Context) -> bytes | None:
        asked = await self._next(health_pb2.HealthCheckRequest, context)
        told = await self.health.Check(asked or health_pb2.HealthCheckRequest(), context)
        return bytes(told.SerializeToString())

    async def _watch(self, context: Context) -> None:
        asked = await self._next(health_pb2.HealthCheckRequest, context)
        writer: Context = _Writer(context)
        await self.health.Watch(asked or health_pb2.HealthCheckRequest(), writer)

    async def _reflect(self, context: Context) -> None:
        while (asked := await self._next(reflection_pb2.ServerReflectionRequest, context)) is not None:
            answers: Any = self._reflection.ServerReflectionInfo(_only(asked), context)  # what is typed is its old form
            async for told in answers:
                await context.write(told.SerializeToString())

    async def _next(self, kind: type[M], context: Context) -> M | None:
        """Read the next message, None at the end; InvalidRequest where it is long or none, TimeoutError where slow."""
        async with self._readers.place(), asyncio.timeout(self._timeout_s):
            raw = await context.read()
        if raw is grpc.aio.EOF:
            return None
        if len(raw) > ASKED_LIMIT_BYTES:
            raise InvalidRequest((Fault("", f"at most {ASKED_LIMIT_BYTES} bytes"),))
        return parsed(kind, raw)


async def _only(message: M) -> AsyncIterator[M]:
    yield message


async def _end(context: Context, code: grpc.StatusCode, why: str) -> NoReturn:
    await context.abort(code, why)
    raise AssertionError("abort raises")


class _Writer:
    """A context that takes messages, for what is written over them."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def write(self, message: Message) -> None:
        """Send a message."""
        await self._context.write(message.SerializeToString())
