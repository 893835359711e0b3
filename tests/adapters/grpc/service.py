"""A whole gRPC API in this process, over the memory adapters, with a channel to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.adapters.rest.service import Service
from waypost.entrypoints.grpc.api import GrpcApi
from waypost.entrypoints.grpc.refusals import DETAILS_KEY
from waypost.entrypoints.grpc.server import GrpcServer
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.runtime.listening import Listen
from waypost.runtime.tls import ServerTls
from waypost.v1 import notifications_pb2 as pb
from waypost.v1.notifications_pb2_grpc import NotificationsStub

HERE = Listen("127.0.0.1", 0)
DEFAULTS = GrpcSettings(listen=HERE)


class Door:
    """The door, what is behind it, and a caller before it."""

    def __init__(self, service: Service, server: GrpcServer, channel: grpc.aio.Channel) -> None:
        self.service = service
        self.server = server
        self.channel: Any = channel  # neither it nor what is generated says what bytes it takes
        self.stub: Any = NotificationsStub(channel)
        self.health: Any = HealthStub(channel)
        self.key = [("authorization", f"Bearer {service.made.text}")]


@asynccontextmanager
async def served(
    settings: GrpcSettings = DEFAULTS, tls: ServerTls | None = None, service: Service | None = None
) -> AsyncIterator[Door]:
    """A door with its keys; the channel to it is without *tls*. *service* is behind it, if not the memory adapters."""
    if service is None:
        service = Service()
        await service.add_keys()
    api = service.api
    server = GrpcServer(
        GrpcApi(
            intake=api.intake,
            views=api.views,
            callers=api.callers,
            telemetry=api.telemetry,
            is_ready=lambda: api.readiness().ready,
            is_draining=api.draining,
            settings=settings,
            limits=api.limits,
        ),
        tls,
    )
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            yield Door(service, server, channel)
    finally:
        await server.stop()


def shown(user_id: str = "user-1", **fields: Any) -> pb.Submission:
    """A visible notification as a caller writes it."""
    return pb.Submission(user_id=user_id, **{"title": "Hello", **fields})


def details_of(status: status_pb2.Status) -> dict[str, Message]:
    """The details by the name of their type."""
    found: dict[str, Message] = {}
    for packed in status.details:
        name = packed.type_url.rpartition(".")[2]
        detail = getattr(error_details_pb2, name)()
        packed.Unpack(detail)
        found[name] = detail
    return found


def status_in(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    """The google.rpc.Status of a refused call."""
    raw = dict(error.trailing_metadata() or ())[DETAILS_KEY]
    return cast("status_pb2.Status", status_pb2.Status.FromString(raw))


def reason(status: status_pb2.Status) -> str:
    """The stable code."""
    info = details_of(status)["ErrorInfo"]
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert info.domain == "waypost"
    return str(info.reason)


def violations(status: status_pb2.Status) -> list[tuple[str, str]]:
    """The wrong fields."""
    bad = details_of(status)["BadRequest"]
    assert isinstance(bad, error_details_pb2.BadRequest)
    return [(each.field, each.description) for each in bad.field_violations]
