"""Settings of a pool: the server it connects to, and how it behaves."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from .frames import LARGEST_WINDOW
from .proxy import Proxy
from .results import Answer


@dataclass(frozen=True)
class Origin:
    """A server; `tls` None is HTTP/2 in clear text with prior knowledge.

    The context's ALPN list is set to h2 by the pool. `server_name` is sent as SNI and checked in the certificate; the
    host where it is None.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None
    server_name: str | None = None
    proxy: Proxy | None = None


@dataclass(frozen=True)
class PoolSettings:
    """Sizes, watermarks and times of a pool; None switches a rule off."""

    min_connections: int = 1
    max_connections: int = 4
    # Fraction of all streams in use at which another connection is opened, and under which one too many is given up.
    high_water: float = 0.8
    low_water: float = 0.3
    connect_timeout_s: float = 10.0
    idle_timeout_s: float | None = None
    max_age_s: float | None = None
    # Nothing was received for this long on a connection without requests.
    ping_after_idle_s: float | None = None
    # Nothing was received for this long although requests wait for their answers.
    ping_after_silence_s: float | None = 5.0
    ping_timeout_s: float = 5.0
    max_queue: int = 10_000
    backoff_base_s: float = 0.2
    backoff_cap_s: float = 30.0
    # The cap while requests wait for a connection.
    backoff_waiting_cap_s: float = 1.0
    # Streams to use before the server's SETTINGS came (0: wait for them), and at most, whatever it allows.
    initial_stream_limit: int = 1
    max_streams: int = 1000
    max_response_bytes: int = 65_536
    max_header_list_bytes: int = 16_384
    # Whether an answer, not a 200, says that its connection is of no use: it then carries no more requests.
    unfit: Callable[[Answer], bool] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.min_connections <= self.max_connections or self.max_connections < 1:
            raise ValueError("connections: 0 <= min_connections <= max_connections, and at least one")
        if not 0 <= self.low_water < self.high_water <= 1:
            raise ValueError("watermarks: 0 <= low_water < high_water <= 1")
        if not 0 <= self.max_response_bytes < LARGEST_WINDOW:
            raise ValueError("max_response_bytes: below 2^31-1")


@dataclass(frozen=True)
class PoolStats:
    """A pool at one moment; names ending in `_total` only grow."""

    connections: int  # that take requests, or only finish what they have
    ready: int  # of those, that take requests
    connecting: int
    in_flight: int
    queued: int
    opened_total: int
    handshakes_total: int  # attempts, also those that failed
    requests_total: int
    answers_total: int
    unsent_total: int
    unknown_total: int
    resent_total: int
    goaways_total: int
