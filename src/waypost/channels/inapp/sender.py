"""A sender to feeds: it speaks to nobody, since the receipt that is written of it brings the entry into the feed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from waypost.channels.inapp.settings import CHANNEL
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.ids import format_id
from waypost.domain.outcome import Taken
from waypost.domain.submission import STORED_LIMIT_BYTES
from waypost.ports.sender import Capabilities, Health, Rendered, Report

MAX_IN_FLIGHT: Final = 10_000
TIMEOUT_MS: Final = 10_000
"""Milliseconds after which an answer would be overdue; it comes in the same turn of the loop."""


class InappSender:
    """The ``Sender`` to the feeds of one app."""

    def __init__(self, credential: CredentialId) -> None:
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(CHANNEL, TIMEOUT_MS, MAX_IN_FLIGHT, STORED_LIMIT_BYTES)
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        """Have nothing to read and nowhere to connect."""
        self._loop = asyncio.get_running_loop()

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Take every delivery of *batch*."""
        self._loop.call_soon(_take, tuple(batch), report)

    def render(self, delivery: Delivery) -> Rendered:
        """Show the content as the feed has it."""
        body = msgspec.json.encode(delivery.message.content)
        return Rendered({}, body, len(body), STORED_LIMIT_BYTES)

    def health(self) -> Health:
        """Report health, which is that of the store."""
        return Health(True)

    async def stop(self, timeout_s: float) -> None:
        """End at once: nothing is in flight after a turn of the loop."""
        await asyncio.sleep(0)


def _take(batch: Sequence[Delivery], report: Report) -> None:
    for delivery in batch:
        report(delivery, Taken(format_id(delivery.id)))
