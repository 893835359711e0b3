"""The connections to one of Apple's environments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from waypost.channels.apns.errors import CONNECTION_OVER, reason_of
from waypost.channels.apns.settings import MOST_CONNECTIONS, ApnsSettings
from waypost.channels.push.answers import is_success
from waypost.channels.push.origin import authority_of, path_before, path_field, post_to, sized
from waypost.channels.push.patience import Until
from waypost.domain.content import Kind
from waypost.http2 import Answer, Origin, Pool, PoolEvent, PoolSettings, Result, Sockets

OTHER = {"production": "sandbox", "sandbox": "production"}
BROADCAST = {
    "production": "https://api-broadcast.push.apple.com",
    "sandbox": "https://api-broadcast.sandbox.push.apple.com",
}
PING_AFTER_IDLE_S = 3600.0
"""Seconds of idleness before a PING; Apple welcomes one after an hour."""
STREAMS = 1_000
"""The most requests that Apple lets be in flight on a connection."""
OTHER_CONNECTIONS = 5
"""The most connections to the environment that is not the app's own, and to broadcast channels."""
MOST_QUEUED = MOST_CONNECTIONS * STREAMS
"""The most requests that wait for a connection: as many as a sender can be given at once."""
MOST_SOCKETS = 50
"""The most sockets of one credential in a process: all its pools, and connections that only end what they have."""


Request = tuple[str, bytes, bytes, Any]
"""A push to a device: its token, the header block that follows the path, a body, and what its sender knows it by."""
DEVICE: Final = "/3/device/"


class ApnsGateway:
    """One environment of Apple's; silent and visible notifications have pools of their own, or share one.

    A pool belongs to one credential, so that a connection carries one team alone.
    """

    def __init__(self, origin: Origin, pools: dict[Kind, Pool]) -> None:
        self.authority: Final = authority_of(origin)
        self._head = post_to(self.authority)
        self._pools = pools

    def request(
        self, kind: Kind, path: str, head: bytes, body: bytes, until: Until, ended: Callable[[Result], None]
    ) -> None:
        """Push to *path*; *head* is the header block that follows it."""
        block = b"".join((self._head, path_field(path), sized(len(body)), head))
        self._pools[kind].request(block, body, until.deadline, ended, until.answer_by)

    def request_all(
        self, kind: Kind, requests: Sequence[Request], until: Until, ended: Callable[[list[tuple[Any, Result]]], None]
    ) -> None:
        """Push to several devices; *ended* is called with those that have ended since it was called last."""
        blocks: list[tuple[bytes, bytes, Any]] = []
        length, before = -1, b""
        for token, head, body, of in requests:
            if len(token) != length:
                length = len(token)
                before = self._head + path_before(DEVICE, length)
            blocks.append((b"".join((before, token.encode(), sized(len(body)), head)), body, of))
        self._pools[kind].request_all(blocks, until.deadline, ended, until.answer_by)

    def give_back(self, why: str) -> None:
        """End what waits to be sent as not sent: Apple would take none of it."""
        for pool in self._distinct():
            pool.give_back(why)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return sum(pool.stats.connections for pool in self._distinct())

    async def start(self) -> None:
        """Begin to connect, where connections are wanted before there is work."""
        for pool in self._distinct():
            await pool.start()

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close."""
        pools = self._distinct()
        await asyncio.gather(*(pool.drain(timeout_s) for pool in pools))
        await asyncio.gather(*(pool.close() for pool in pools))

    def _distinct(self) -> list[Pool]:
        return list(dict.fromkeys(self._pools.values()))


def own_gateway(
    origin: Origin, settings: ApnsSettings, sockets: Sockets, on_event: Callable[[PoolEvent], None], *, ahead: bool
) -> ApnsGateway:
    """Build the gateway of the app's own environment; *ahead*: with a connection kept for visible notifications."""
    return ApnsGateway(
        origin,
        {
            Kind.VISIBLE: _pool(origin, int(ahead), settings.connections, sockets, on_event),
            Kind.SILENT: _pool(origin, 0, settings.silent_connections, sockets, on_event),
        },
    )


def seldom_gateway(origin: Origin, sockets: Sockets, on_event: Callable[[PoolEvent], None]) -> ApnsGateway:
    """Build the gateway of the other environment or of broadcasts: it opens nothing before it is needed."""
    return ApnsGateway(origin, dict.fromkeys(Kind, _pool(origin, 0, OTHER_CONNECTIONS, sockets, on_event)))


def _pool(origin: Origin, least: int, most: int, sockets: Sockets, on_event: Callable[[PoolEvent], None]) -> Pool:
    limits = PoolSettings(
        min_connections=least,
        max_connections=most,
        ping_after_idle_s=PING_AFTER_IDLE_S,
        low_water=0.2,
        max_streams=STREAMS,
        max_queue=MOST_QUEUED,
        unfit=_ends_its_connection,
    )
    return Pool(origin, limits, on_event=on_event, sockets=sockets)


def _ends_its_connection(answer: Answer) -> bool:
    return not is_success(answer) and reason_of(answer) in CONNECTION_OVER
