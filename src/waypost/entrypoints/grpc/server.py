"""The gRPC server of one worker, with health and reflection."""

from __future__ import annotations

import asyncio

import grpc
from grpc_health.v1 import health_pb2

from waypost.domain.errors import ConfigurationError
from waypost.entrypoints.grpc.accepting import accepting_server
from waypost.entrypoints.grpc.anonymous import AnonymousServices
from waypost.entrypoints.grpc.api import GrpcApi
from waypost.entrypoints.grpc.service import SERVICE, Notifications
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.runtime.tls import ServerTls

GRACE_S = 5.0
"""Seconds for calls in hand to be answered before the connections close."""
LOOK_S = 1.0
"""Seconds between two looks at readiness for those who watch it."""
_HEALTH = health_pb2.HealthCheckResponse


class GrpcServer:
    """The gRPC server, which serves from ``start`` to ``stop`` (fulfils ports.lifecycle.Lifecycle)."""

    def __init__(self, api: GrpcApi, tls: ServerTls | None = None) -> None:
        self._api = api
        self._tls = tls
        self._service = Notifications(api)
        self._anonymous = AnonymousServices(api.settings, (SERVICE,))
        self._server: grpc.aio.Server | None = None
        self._watching: asyncio.Task[None] | None = None
        self.port = 0

    async def start(self) -> None:
        """Accept calls; ConfigurationError where the address cannot be had."""
        listen = self._api.settings.listen
        server = accepting_server(_options(self._api.settings))
        server.add_registered_method_handlers(SERVICE, self._service.methods())
        self._anonymous.add_to(server)
        try:
            if self._tls is None:
                self.port = server.add_insecure_port(str(listen))
            else:
                self.port = server.add_secure_port(str(listen), _credentials(self._tls))
        except RuntimeError:
            raise ConfigurationError("grpc.listen", f"cannot listen on {listen}") from None
        await self._tell_health()
        await server.start()
        self._server = server
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Accept nothing more, let streams acknowledge what they have read, and calls in hand be answered.

        Cancelled, abort those that are not.
        """
        if self._server is None or self._watching is None:
            return
        self._watching.cancel()
        await self._anonymous.health.enter_graceful_shutdown()
        self._service.close_streams()
        server, self._server = self._server, None
        try:
            await server.stop(GRACE_S)
        except asyncio.CancelledError:
            await server.stop(None)
            raise

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self._tell_health()

    async def _tell_health(self) -> None:
        status = _HEALTH.SERVING if self._api.is_ready() else _HEALTH.NOT_SERVING
        for service in ("", SERVICE):
            await self._anonymous.health.set(service, status)


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """Build credentials that show *tls* as it is now, at each connection, on a thread of gRPC's core."""
    given = tls.shown

    def told() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(given.key, given.certificate)], given.client_ca)

    def changed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal given
        if given is tls.shown:
            return None
        given = tls.shown
        return told()

    asks = given.client_ca is not None
    return grpc.dynamic_ssl_server_credentials(told(), changed, asks)  # type: ignore[arg-type] # None is "as before"


def _options(settings: GrpcSettings) -> list[tuple[str, int]]:
    """List the channel arguments of gRPC's core (grpc_types.h)."""
    return [
        ("grpc.so_reuseport", 1),  # the workers share the port
        ("grpc.max_receive_message_length", settings.message_limit_bytes),
        ("grpc.compression_enabled_algorithms_bitset", 1),  # none: a small message would become a large one
        ("grpc.max_send_message_length", -1),  # of a Get with all its receipts
        ("grpc.max_metadata_size", settings.metadata_limit_bytes),
        ("grpc.absolute_max_metadata_size", settings.metadata_limit_bytes),
        ("grpc.max_allowed_incoming_connections", settings.connections_limit),
        ("grpc.max_concurrent_streams", settings.calls_limit),
        ("grpc.max_connection_idle_ms", settings.idle_s * 1_000),
        ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.keepalive_time_ms", 60_000),  # a caller that went without a word holds its streams for so long
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ]
