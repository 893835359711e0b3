"""Settings of the gRPC API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.runtime.listening import Listen, TlsSettings

KIB = 1024
MIB = 1024 * KIB


class GrpcSettings(Struct, frozen=True, kw_only=True):
    """Settings of gRPC: where it answers, and how much a caller may ask of it."""

    listen: Listen | None = None
    """The address of the gRPC API; port 0 picks a free one. Unset: off."""
    tls: TlsSettings | None = None
    """Connections are encrypted; unset, they are not, which is for the loopback and behind a proxy alone."""
    message_limit_bytes: Annotated[int, Meta(ge=64 * KIB, le=64 * MIB)] = 4 * MIB
    """The largest message."""
    metadata_limit_bytes: Annotated[int, Meta(ge=1 * KIB, le=1 * MIB)] = 16 * KIB
    """The most metadata of one call."""
    message_timeout_s: Annotated[float, Meta(gt=0)] = 30.0
    """Seconds that a message may take; a stream may be silent for any time."""
    calls_limit: Annotated[int, Meta(ge=1)] = 1_000
    """The most calls of one worker at once, streams included; above it, refused."""
    anonymous_calls_limit: Annotated[int, Meta(ge=1)] = 200
    """The same without a credential (health, reflection); above it, the oldest ends."""
    connections_limit: Annotated[int, Meta(ge=1)] = 10_000
    """The most connections of one worker; above it, new ones are closed."""
    stream_in_flight: Annotated[int, Meta(ge=1)] = 2_000
    """The most unacknowledged items of a stream; above it, it is not read."""
    idle_s: Annotated[int, Meta(ge=1)] = 600
    """Seconds that a connection without a call is kept."""
