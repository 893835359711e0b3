"""A multiplexed HTTP/2 client for very many small requests; it knows nothing of what they mean.

`Pool` is the door; docs/http2.md has its contract and an example.
"""

from .events import ConnectFailed, ConnectionClosed, ConnectionOpened, GoAwayReceived, PoolEvent
from .hpack import encode_headers
from .pool import Pool
from .proxy import Proxy, proxy_of
from .results import Answer, Lost, Result, Unknown, Unsent
from .settings import Origin, PoolSettings, PoolStats
from .sockets import Sockets

__all__ = [
    "Answer",
    "ConnectFailed",
    "ConnectionClosed",
    "ConnectionOpened",
    "GoAwayReceived",
    "Lost",
    "Origin",
    "Pool",
    "PoolEvent",
    "PoolSettings",
    "PoolStats",
    "Proxy",
    "Result",
    "Sockets",
    "Unknown",
    "Unsent",
    "encode_headers",
    "proxy_of",
]
