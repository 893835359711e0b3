"""A sender of e-mails: rendered once for all who are told the same, carried by a few connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from waypost.channels.email.access import read_access, read_author
from waypost.channels.email.mailboxes import why_no_mailbox
from waypost.channels.email.message import LIMIT_BYTES, Author, Rendering, assemble, render
from waypost.channels.email.message_ids import message_id_of, reference_of
from waypost.channels.email.pool import SmtpPool, Task
from waypost.channels.email.session import Mail
from waypost.channels.email.settings import CHANNEL, EmailSettings
from waypost.channels.push.watch import CredentialWatch
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.message import Message
from waypost.domain.outcome import Outcome, Refused
from waypost.domain.time import SECOND_MS
from waypost.ports.clock import Clock
from waypost.ports.sender import Capabilities, Health, Rendered, Report
from waypost.telemetry.sink import Telemetry

WAITING_FOR_EACH: Final = 4
"""Messages that are held for each connection: one on its way, others that need not be fetched first."""


class EmailSender:
    """The ``Sender`` of one app to people's mailboxes."""

    def __init__(
        self, credential: CredentialId, settings: EmailSettings, *, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._settings = settings
        self._section = credential.section
        self._clock = clock
        self.credential: Final = credential
        self.capabilities: Final = Capabilities(
            channel=CHANNEL,
            request_timeout_ms=settings.timeout_s * SECOND_MS,
            max_in_flight=settings.connections * WAITING_FOR_EACH,
            payload_limit_bytes=LIMIT_BYTES,
        )
        self._loop: asyncio.AbstractEventLoop
        self._author: Author | None = None
        self._pool: SmtpPool | None = None
        self._watch = CredentialWatch(credential, telemetry, lambda: 0 if self._pool is None else self._pool.open)

    async def start(self) -> None:
        """Read who we are; ConfigurationError names what cannot be used. Connections come with deliveries."""
        self._loop = asyncio.get_running_loop()
        self._author = read_author(self._section, self._settings)
        self._pool = SmtpPool(read_access(self._section, self._settings), self._settings, self._watch.saw)

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; each delivery is reported exactly once, never before this returns."""
        author = self._ready()
        for message, deliveries in groupby(batch, key=_shared):
            rendering = render(message, author)
            for delivery in deliveries:
                self._send(rendering, delivery, report)

    def render(self, delivery: Delivery) -> Rendered:
        """Show the message that ``send`` would hand over, without its reader's mailbox."""
        author = self._ready()
        rendering = _for_reader(render(delivery.message, author), delivery)
        if isinstance(rendering, Refused):
            return Rendered({}, b"", 0, LIMIT_BYTES, rendering.why)
        return Rendered(
            headers={name: value.decode().replace("\r\n", "").strip() for name, value in rendering.headers},
            body=rendering.body,
            size_bytes=len(assemble(rendering, delivery, author)),
            limit_bytes=LIMIT_BYTES,
        )

    def health(self) -> Health:
        """Report health: not ok while the server refuses who we are."""
        return self._watch.health()

    async def stop(self, timeout_s: float) -> None:
        """Let what is on its way end, then close."""
        if self._pool is not None:
            await self._pool.stop(timeout_s)

    def _ready(self) -> Author:
        assert self._author is not None, "it was started"
        return self._author

    def _send(self, rendered: Rendering | Refused, delivery: Delivery, report: Report) -> None:
        author, rendering = self._ready(), _for_reader(rendered, delivery)
        if isinstance(rendering, Refused):
            self._loop.call_soon(report, delivery, rendering)
            return

        def build() -> Mail:
            return Mail(
                author.bounces_to,
                delivery.device.token,
                assemble(rendering, delivery, author),
                message_id_of(reference_of(delivery.id, delivery.n), author.domain),
            )

        def done(outcome: Outcome) -> None:
            self._watch.heed(outcome)
            report(delivery, outcome)

        assert self._pool is not None, "it was started"
        now_s, patience_s = self._loop.time(), self._settings.timeout_s
        self._pool.add(Task(build, done, begin_by=now_s + patience_s / 2, answer_by=now_s + patience_s))


def _shared(delivery: Delivery) -> Message:
    """Return what a message has in common with those of other readers: it is rendered once for all of them."""
    message = delivery.message
    return message if message.unsubscribe is None else replace(message, unsubscribe=None)


def _for_reader(rendering: Rendering | Refused, delivery: Delivery) -> Rendering | Refused:
    """Refuse what is stored as an address and is none: it would become a line of its own."""
    why = why_no_mailbox(delivery.device.token)
    return rendering if why is None else Refused("invalid_mailbox", f"the address {why}")
