"""Events of a pool's connections, for logs and metrics; and what senders learn from GOAWAY debug data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConnectionOpened:
    """A connection is ready for requests."""


@dataclass(frozen=True)
class ConnectionClosed:
    """A connection that was open is no more; *alert* names the TLS alert by which the server ended it, if one did."""

    reason: str
    alert: str = ""


@dataclass(frozen=True)
class ConnectFailed:
    """An attempt to connect failed, perhaps by a TLS alert; the next one comes after the given time."""

    reason: str
    next_attempt_s: float
    alert: str = ""


@dataclass(frozen=True)
class GoAwayReceived:
    """The server announced that it ends a connection, with an error code (RFC 9113, section 7) and debug data."""

    code: int
    last_stream_id: int
    debug: bytes


PoolEvent = ConnectionOpened | ConnectionClosed | ConnectFailed | GoAwayReceived
