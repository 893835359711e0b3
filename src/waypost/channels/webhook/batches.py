"""Batches of what is posted to one URL: events wait a moment for each other and share one signed request.

Each has the id that it would have by itself, at every attempt, whichever batch it is in.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from waypost.domain.delivery import Delivery
from waypost.domain.time import Instant, isoformat
from waypost.ports.sender import Report

LIMIT_BYTES: Final = 512 * 1024
"""The most bytes of events in one request."""
BATCH: Final = "batch"
"""The ``type`` of a body that holds several."""


class Posted(Struct, frozen=True):
    """A delivery that is ready for the wire, and who hears what became of it."""

    delivery: Delivery
    webhook_id: str
    body: bytes
    report: Report


class Gathering:
    """The events that wait for the next request: it goes when it is full, or *wait_s* after its first."""

    def __init__(
        self,
        most: int,
        wait_s: float,
        loop: asyncio.AbstractEventLoop,
        post: Callable[[Sequence[Posted]], None],
    ) -> None:
        self._most = most
        self._wait_s = wait_s
        self._loop = loop
        self._post = post
        self._waiting: list[Posted] = []
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, one: Posted) -> None:
        """Let *one* wait; what is full is posted at once."""
        if self._bytes + len(one.body) > LIMIT_BYTES:
            self.flush()
        self._waiting.append(one)
        self._bytes += len(one.body)
        if len(self._waiting) >= self._most:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._wait_s, self.flush)

    def flush(self) -> None:
        """Post what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        together, self._waiting, self._bytes = self._waiting, [], 0
        if together:
            self._post(together)


def batch_id(members: Sequence[Posted]) -> str:
    """Name a request by what is in it, so that the same events together are the same message."""
    return f"batch-{hashlib.sha256(' '.join(each.webhook_id for each in members).encode()).hexdigest()[:32]}"


def batch_body(members: Sequence[Posted], now: Instant) -> bytes:
    """Build the body: each event as it would be posted by itself, with its id."""
    events = [{"id": each.webhook_id, "payload": msgspec.Raw(each.body)} for each in members]
    return msgspec.json.encode({"type": BATCH, "timestamp": isoformat(now), "events": events})
