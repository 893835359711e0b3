"""A multiplexed HTTP/2 client for very many small requests; it knows nothing of what they mean.

`Pool` is the entry; docs/internals/http2.md has its contract and an example.
"""

from typing import Final

from . import connection
from .dial import DialError, NotHttp2, Resolve, addresses, dial
from .events import ConnectFailed, ConnectionClosed, ConnectionOpened, GoAwayReceived, PoolEvent
from .eyeballs import Address
from .hpack import encode_headers
from .pool import Pool
from .proxy import Proxy, proxy_of
from .results import Answer, Lost, Result, Unknown, Unsent
from .settings import Origin, PoolSettings, PoolStats
from .sockets import Sockets

COMPILED: Final = not connection.__file__.endswith(".py")
"""Whether the code that each request runs is compiled as C, by mypyc, from this very source."""

__all__ = [
    "COMPILED",
    "Address",
    "Answer",
    "ConnectFailed",
    "ConnectionClosed",
    "ConnectionOpened",
    "DialError",
    "GoAwayReceived",
    "Lost",
    "NotHttp2",
    "Origin",
    "Pool",
    "PoolEvent",
    "PoolSettings",
    "PoolStats",
    "Proxy",
    "Resolve",
    "Result",
    "Sockets",
    "Unknown",
    "Unsent",
    "addresses",
    "dial",
    "encode_headers",
    "proxy_of",
]
