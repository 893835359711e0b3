"""The connections to FCM, and who takes their streams first.

How FCM treats connections is observed, not documented (Bloomberg's notes on its HTTP/2 senders): ALPN is required, 100
streams, an end after 4 minutes without a request, after an hour, and after 3 PINGs without a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from waypost.channels.fcm.groups import Group
from waypost.channels.push.patience import Until
from waypost.http2 import ConnectionOpened, Origin, Pool, PoolEvent, PoolSettings, Result

STREAMS = 100
IDLE_S = 230.0
"""Seconds until we end an idle connection, before FCM does."""
MAX_AGE_S = 59 * 60.0
"""Seconds of a connection's life, likewise; the pool takes up to a tenth off, so that not all end together."""
PING_AFTER_SILENCE_S = 11.0
"""A connection that answers nothing is asked for life, and given up 5 s later; never one that is idle.

More than half of the time that an answer is waited for: of any two requests that follow each other, both unanswered, no
more than two PINGs lie between.
"""


class FcmBatch:
    """Messages that were handed over together: their instants, and who is told how they ended."""

    __slots__ = ("ended", "until")

    def __init__(self, until: Until, ended: Callable[[list[tuple[Any, Result]]], None]) -> None:
        self.until = until
        self.ended = ended


FcmRequest = tuple[bytes, bytes, Any, FcmBatch]
"""A message on its way: head, body, what its sender knows it by, and what it was handed over with."""


class FcmConnections:
    """The connections: from *least* up to *most* for all, and one more for what is urgent while those are full.

    What waits for a stream waits here in two groups, the urgent one before the other: what the pool has queued keeps
    its order, so that a flushed group is before everything; the connection in reserve never carries any of it.
    """

    def __init__(
        self,
        origin: Origin,
        least: int,
        most: int,
        *,
        loop: asyncio.AbstractEventLoop,
        on_event: Callable[[PoolEvent], None],
    ) -> None:
        self._on_event = on_event
        self._main = Pool(origin, _limits(least, most), loop=loop, on_event=self._saw, on_room=self._fill)
        self._reserve = Pool(origin, _limits(0, 1), loop=loop, on_event=self._saw, on_room=self._fill)
        self._urgent: Group[FcmRequest] = Group(loop, self._room_for_urgent, self._send_urgent)
        self._others: Group[FcmRequest] = Group(loop, self._room_for_others, self._send_others)

    @property
    def connections(self) -> int:
        """How many are open."""
        return self._main.stats.connections + self._reserve.stats.connections

    async def start(self) -> None:
        """Begin to connect."""
        await self._main.start()
        await self._reserve.start()

    def send(self, requests: Sequence[FcmRequest], *, urgent: bool) -> None:
        """Send at once where streams are free; each request ends exactly once, never before this returns."""
        (self._urgent if urgent else self._others).add(requests)

    async def drain(self, timeout_s: float) -> None:
        """Take no more and wait until all have ended, at most *timeout_s*."""
        self._flush()
        await asyncio.gather(self._main.drain(timeout_s), self._reserve.drain(timeout_s))

    async def close(self) -> None:
        """Close all connections; what has not ended does so now."""
        self._flush()
        await asyncio.gather(self._main.close(), self._reserve.close())

    def _room_for_urgent(self) -> int:
        if self._reserve.stats.ready:
            return self._main.room() + self._reserve.room()
        # Nothing goes out before the reserve is connected, and nothing makes it connect but a request.
        return self._main.room() or int(not self._reserve.stats.queued)

    def _room_for_others(self) -> int:
        return 0 if self._urgent else self._main.room()

    def _send_urgent(self, requests: Iterable[FcmRequest]) -> None:
        for request in requests:
            _send(self._main if self._main.room() else self._reserve, [request])

    def _send_others(self, requests: Iterable[FcmRequest]) -> None:
        _send(self._main, requests)

    def _saw(self, event: PoolEvent) -> None:
        self._on_event(event)
        if isinstance(event, ConnectionOpened):
            self._fill()

    def _flush(self) -> None:
        self._urgent.flush()
        self._others.flush()

    def _fill(self) -> None:
        self._urgent.fill()
        self._others.fill()


_batch_of = itemgetter(3)


def _send(pool: Pool, requests: Iterable[FcmRequest]) -> None:
    for batch, alike in groupby(requests, key=_batch_of):
        until = batch.until
        pool.request_all([each[:3] for each in alike], until.deadline, batch.ended, until.answer_by)


def _limits(at_least: int, at_most: int) -> PoolSettings:
    return PoolSettings(
        min_connections=at_least,
        max_connections=at_most,
        max_streams=STREAMS,
        idle_timeout_s=IDLE_S,
        max_age_s=MAX_AGE_S,
        ping_after_idle_s=None,
        ping_after_silence_s=PING_AFTER_SILENCE_S,
    )
