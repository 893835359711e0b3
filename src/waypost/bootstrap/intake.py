"""The servers of one worker, put together."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from waypost.bootstrap.listening import sharing
from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.domain.extras import how_to_install
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.ports.lifecycle import Lifecycle
from waypost.runtime.roles import Role
from waypost.runtime.tls import ServerTls

REST_TLS: Final = "rest.tls"
GRPC_TLS: Final = "grpc.tls"
OPERATING_LISTEN: Final = "rest.operating_listen"


def servers_of(config: Config, api: Api, listener: socket.socket, tls: Mapping[str, ServerTls]) -> list[Lifecycle]:
    """Build every server that callers connect to; ConfigurationError where what one needs is not installed."""
    rest = tls.get(REST_TLS)
    options = serve_options(config.rest, None if rest is None else rest.context)
    servers: list[Lifecycle] = [ApiServer(build_app(api), listener, options)]
    if config.rest.operating_listen is not None:
        beside = sharing(OPERATING_LISTEN, config.rest.operating_listen)
        operating = build_app(replace(api, operating_only=True, also=frozenset()))
        servers.append(ApiServer(operating, beside, serve_options(config.rest)))
    if config.grpc.listen is not None and not api.operating_only:
        servers.append(_grpc(config, api, tls.get(GRPC_TLS)))
    return servers


def server_tls(config: Config) -> dict[str, ServerTls]:
    """Load the TLS of each listener that has it, by the path of its settings; ConfigurationError says what is wrong."""
    grpc = config.grpc.tls if config.grpc.listen is not None and Role.API in config.does() else None
    chosen = {REST_TLS: config.rest.tls, GRPC_TLS: grpc}
    return {name: ServerTls(name, settings) for name, settings in chosen.items() if settings is not None}


def _grpc(config: Config, api: Api, tls: ServerTls | None) -> Lifecycle:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its core would write plain text among our JSON
    logging.getLogger("grpc").addHandler(logging.NullHandler())  # so would its Python
    try:
        from waypost.entrypoints.grpc.api import GrpcApi  # noqa: PLC0415 - what it speaks with is an optional extra
        from waypost.entrypoints.grpc.server import GrpcServer  # noqa: PLC0415 - as above
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in _GRPC_PACKAGES:
            raise
        raise ConfigurationError("grpc", f"its server is not installed: {how_to_install('grpc')}") from None
    return GrpcServer(
        GrpcApi(
            intake=api.intake,
            views=api.views,
            callers=api.callers,
            telemetry=api.telemetry,
            is_ready=lambda: api.readiness().ready,
            is_draining=api.draining,
            settings=config.grpc,
            limits=api.limits,
        ),
        tls,
    )


_GRPC_PACKAGES = ("google", "grpc", "grpc_health", "grpc_reflection")
