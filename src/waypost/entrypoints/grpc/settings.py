"""What can be set about the gRPC API."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from waypost.runtime.listening import Listen, TlsSettings

KIB = 1024
MIB = 1024 * KIB


class GrpcSettings(Struct, frozen=True, kw_only=True):
    """Where gRPC answers, and how much a caller may ask of it."""

    listen: Listen | None = None
    """Where gRPC answers, host:port; port 0 is any. Unset, it does not."""
    tls: TlsSettings | None = None
    """Connections are encrypted; unset, they are not, which is for the loopback and behind a proxy alone."""
    message_limit_bytes: Annotated[int, Meta(ge=64 * KIB, le=64 * MIB)] = 4 * MIB
    """The largest message: a notification, a batch, or some items of a stream."""
    metadata_limit_bytes: Annotated[int, Meta(ge=1 * KIB, le=1 * MIB)] = 16 * KIB
    """The most metadata of a call."""
    message_timeout_s: Annotated[float, Meta(gt=0)] = 30.0
    """How long a caller may take to send the message of a call; a stream may be silent for as long as it likes."""
    calls_limit: Annotated[int, Meta(ge=1)] = 1_000
    """The most calls in hand of one worker, streams among them; past it, further ones are refused."""
    stream_in_flight: Annotated[int, Meta(ge=1)] = 2_000
    """Items of one stream that may wait for their acknowledgement; past it, the stream is not read."""
    idle_s: Annotated[int, Meta(ge=1)] = 600
    """How long a connection without a call is kept."""
