"""Health and reflection: for balancers, orchestrators and people with grpcurl."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.adapters.grpc.service import served
from waypost.entrypoints.grpc import server
from waypost.v1 import notifications_pb2 as pb

pytestmark = pytest.mark.asyncio

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("service", ["", "waypost.v1.Notifications"])
async def test_health_follows_readiness(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key; who watches is told of each change."""
    monkeypatch.setattr(server, "LOOK_S", 0.01)
    async with served() as door:
        asked = health_pb2.HealthCheckRequest(service=service)
        assert (await door.health.Check(asked)).status == SERVING
        watching = door.health.Watch(asked)
        told = aiter(watching)
        assert (await anext(told)).status == SERVING
        door.service.not_ready["store"] = "full"
        assert (await anext(told)).status == NOT_SERVING
        door.service.not_ready.clear()
        assert (await anext(told)).status == SERVING
        stopping = asyncio.create_task(door.server.stop())
        assert (await anext(told)).status == NOT_SERVING
        watching.cancel()
        await stopping


async def test_reflection_shows_the_service_as_it_is() -> None:
    """A caller needs no proto file."""
    async with served() as door:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(door.channel)
        asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol="waypost.v1.Notifications")
        answer = await anext(aiter(stub.ServerReflectionInfo(iter([asked]))))
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(raw)
            for raw in answer.file_descriptor_response.file_descriptor_proto
        ]
        (mine,) = [file for file in files if file.package == "waypost.v1"]
        own = descriptor_pb2.FileDescriptorProto()
        pb.DESCRIPTOR.CopyToProto(own)
        assert mine == own


async def test_a_service_that_is_not_there_is_not_found() -> None:
    """As the protocol of health checks wants it."""
    async with served() as door:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await door.health.Check(health_pb2.HealthCheckRequest(service="none"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
