"""What happens to a pool's connections, for logs and metrics; and what senders learn from GOAWAY debug data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConnectionOpened:
    """A connection is ready for requests."""


@dataclass(frozen=True)
class ConnectionClosed:
    """A connection that was open is no more."""

    reason: str


@dataclass(frozen=True)
class ConnectFailed:
    """An attempt to connect failed; the next one comes after the given time."""

    reason: str
    next_attempt_s: float


@dataclass(frozen=True)
class GoAwayReceived:
    """The server announced that it ends a connection, with an error code (RFC 9113, section 7) and debug data."""

    code: int
    last_stream_id: int
    debug: bytes


PoolEvent = ConnectionOpened | ConnectionClosed | ConnectFailed | GoAwayReceived
