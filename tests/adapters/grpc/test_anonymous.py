"""Health and reflection ask for no credential, so what one caller may hold there is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from tests.adapters.grpc.service import HERE, Door, served, shown
from waypost.entrypoints.grpc.settings import MIB, GrpcSettings

pytestmark = pytest.mark.asyncio
WATCH = "/grpc.health.v1.Health/Watch"
CHECK = "/grpc.health.v1.Health/Check"
REFLECT = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LONG = "x" * (4 * MIB - 64)
LONG_ASKED = {
    CHECK: health_pb2.HealthCheckRequest(service=LONG),
    WATCH: health_pb2.HealthCheckRequest(service=LONG),
    REFLECT: reflection_pb2.ServerReflectionRequest(file_containing_symbol=LONG),
}


def opened(door: Door, method: str) -> Any:
    """A call without a credential, which says nothing yet."""
    return door.channel.stream_stream(method)()


async def ended(call: Any) -> grpc.StatusCode:
    """How the call ends, whatever it says before."""
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    code: grpc.StatusCode = await call.code()
    return code


@pytest.mark.parametrize("method", LONG_ASKED)
async def test_a_message_of_megabytes_is_refused(method: str) -> None:
    async with served() as door:
        call = opened(door, method)
        await call.write(LONG_ASKED[method].SerializeToString())
        await call.done_writing()
        async with asyncio.timeout(20):
            assert await ended(call) is grpc.StatusCode.INVALID_ARGUMENT


async def test_past_the_most_watches_the_oldest_makes_room() -> None:
    """Whoever asks once is answered beside them, and so is whoever has a key."""
    async with served(GrpcSettings(listen=HERE, anonymous_calls_limit=3)) as door:
        watches = []
        for _ in range(4):
            watch = opened(door, WATCH)
            watches.append(watch)
            await watch.write(health_pb2.HealthCheckRequest().SerializeToString())
            await watch.read()
        async with asyncio.timeout(20):
            assert await ended(watches[0]) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert not any(watch.done() for watch in watches[1:])
        assert (await door.health.Check(health_pb2.HealthCheckRequest())).status
        assert (await door.stub.Submit(shown(), metadata=door.key, timeout=60)).id


async def test_of_those_who_do_not_finish_their_message_few_are_waited_for() -> None:
    """A message may have `grpc.message_limit_bytes`, and all of it is in memory before it can be judged."""
    async with served() as door:
        calls = []
        for _ in range(17):
            calls.append(opened(door, WATCH))
            await calls[-1].wait_for_connection()
        ends = [asyncio.create_task(ended(call)) for call in calls]
        async with asyncio.timeout(20):
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        assert done.pop().result() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await door.health.Check(health_pb2.HealthCheckRequest())).status
        for call in calls:
            call.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def test_connections_past_the_limit_are_closed() -> None:
    """Its own: what they take is not what REST has (`LimitNOFILE` is for both)."""
    async with served(GrpcSettings(listen=HERE, connections_limit=3)) as door:
        assert (await door.stub.Submit(shown(), metadata=door.key, timeout=60)).id
        held = [await asyncio.open_connection("127.0.0.1", door.server.port) for _ in range(6)]
        async with asyncio.timeout(8):  # the handshake's own end is after 10 s
            closed = {asyncio.create_task(_closed(reader)) for reader, _ in held}
            for _ in range(4):
                _, closed = await asyncio.wait(closed, return_when=asyncio.FIRST_COMPLETED)
                if len(held) - len(closed) >= 4:
                    break
        assert (await door.stub.Submit(shown(), metadata=door.key, timeout=60)).id
        for task in closed:
            task.cancel()
        for _, writer in held:
            writer.transport.abort()


async def _closed(reader: asyncio.StreamReader) -> None:
    """Read until the server has closed the connection."""
    try:
        while await reader.read(1_024):
            pass
    except ConnectionError:
        pass
