"""The doors of one worker, put together."""

from __future__ import annotations

import logging
import os
import socket

from waypost.config import Config
from waypost.domain.errors import ConfigurationError
from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.rest.api import Api
from waypost.entrypoints.rest.app import build_app
from waypost.entrypoints.rest.server import ApiServer
from waypost.entrypoints.rest.serving import serve_options
from waypost.ports.lifecycle import Lifecycle


def doors_of(config: Config, api: Api, listener: socket.socket) -> list[Lifecycle]:
    """Every door that callers come to; ConfigurationError where what one needs is not installed."""
    doors: list[Lifecycle] = [ApiServer(build_app(api), listener, serve_options(config.rest))]
    if config.grpc.listen is not None and not api.operating_only:
        doors.append(_grpc(config, api))
    return doors


def _grpc(config: Config, api: Api) -> Lifecycle:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its core would write plain text among our JSON
    logging.getLogger("grpc").addHandler(logging.NullHandler())  # so would its Python
    try:
        from waypost.entrypoints.grpc.api import GrpcApi  # noqa: PLC0415 - what it speaks with is an optional extra
        from waypost.entrypoints.grpc.server import GrpcServer  # noqa: PLC0415 - as above
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in _GRPC_PACKAGES:
            raise
        raise ConfigurationError("grpc", "its server is not installed: pip install 'waypost[grpc]'") from None
    return GrpcServer(
        GrpcApi(
            intake=api.intake,
            views=api.views,
            callers=Authenticator(api.keys, api.device_caps, api.clock, config.rest.key_cache_s),
            telemetry=api.telemetry,
            is_ready=lambda: api.readiness().ready,
            is_draining=api.draining,
            settings=config.grpc,
        )
    )


_GRPC_PACKAGES = ("google", "grpc", "grpc_health", "grpc_reflection")
