"""The stages and stores behind the gRPC API, injected by the composition root."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from waypost.entrypoints.callers import Authenticator
from waypost.entrypoints.grpc.settings import GrpcSettings
from waypost.entrypoints.limits import EntrypointLimits
from waypost.pipeline.intake import Intake
from waypost.ports.views import Views
from waypost.telemetry import Telemetry


class GrpcApi(Struct, frozen=True):
    """The entry points, stores and telemetry behind the methods."""

    intake: Intake
    views: Views
    callers: Authenticator
    telemetry: Telemetry
    is_ready: Callable[[], bool]
    is_draining: Callable[[], bool]
    """Tells whether the process is on its way out: then nothing new is taken."""
    limits: EntrypointLimits
    settings: GrpcSettings = GrpcSettings()
