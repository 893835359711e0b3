"""A gRPC server that no name of a method can end.

grpcio decodes the path of each call to a method that is not registered in the task that accepts calls: one that is not
UTF-8 ends that task, and with it the server, for everybody (as of 1.85). So every method is registered, and calls to
any other are answered here, before their path is looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import grpc
from grpc._cython import cygrpc  # type: ignore[attr-defined] # it is compiled, without types


class _Accepting(cygrpc.AioServer):  # type: ignore[misc] # as above
    """A gRPC server that hands on calls to registered methods alone."""

    def _make_request_call_future(self, method: bytes | None) -> asyncio.Future[Any]:
        """Wait for the next call to *method*; None stands for all unregistered ones, of which none is reported."""
        if method is None:
            return asyncio.create_task(self._refuse_unknown())
        following: asyncio.Future[Any] = super()._make_request_call_future(method)
        return following

    async def _refuse_unknown(self) -> None:
        refusing: set[asyncio.Task[None]] = set()
        while True:
            call = await self._request_call()
            task = asyncio.create_task(_unimplemented(call))
            refusing.add(task)
            task.add_done_callback(refusing.discard)


async def _unimplemented(call: object) -> None:
    context = cygrpc._ServicerContext(call, None, None, asyncio.get_running_loop())
    with contextlib.suppress(cygrpc.AbortError, cygrpc.BaseError):  # that is how it ends, or the caller is gone
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "there is no such method")


def accepting_server(options: Sequence[tuple[str, int]]) -> grpc.aio.Server:
    """Build the server as ``grpc.aio.server`` does."""
    server: Any = grpc.aio.server()
    server._server = _Accepting(asyncio.get_running_loop(), None, (), (), tuple(options), None)
    made: grpc.aio.Server = server
    return made
