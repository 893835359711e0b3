"""Senders: how a provider is spoken to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.channel import Channel
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.domain.outcome import Outcome

Report = Callable[[Delivery, Outcome], None]


class Capabilities(Struct, frozen=True):
    """The abilities and needs of a sender."""

    channel: Channel
    request_timeout_ms: int
    """Milliseconds from hand-over to outcome at most."""
    max_in_flight: int
    """The most deliveries it can usefully hold at once."""
    payload_limit_bytes: int
    scope_of: Callable[[Delivery], str] | None = None
    """Which part of the provider a delivery hangs on (a topic, a push service's origin); called for each.

    Each part has a breaker of its own, which ``Denied`` opens that reaches so far. None: the provider is one.
    """
    fails_apart: bool = False
    """Whether the parts are places of their own, so that one is away or busy without the others."""

    @property
    def late_after_s(self) -> float:
        """Seconds after which an answer is overdue: it may still come, but the provider is congested."""
        return self.request_timeout_ms / 2000


class Health(Struct, frozen=True):
    """The health of a sender: whether it could send now, and why not."""

    ok: bool
    why: str | None = None


class Rendered(Struct, frozen=True):
    """The request that would be sent, for ``explain``; the token and credentials are left out."""

    headers: dict[str, str]
    body: bytes
    size_bytes: int
    limit_bytes: int
    refused: str | None = None
    """The reason why it would not be sent."""


class Sender(Protocol):
    """A sender speaks one provider's protocol with one credential of one app."""

    @property
    def credential(self) -> CredentialId:
        """The credential that it identifies itself with."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the sender, constant for its life."""
        ...

    async def start(self) -> None:
        """Read credentials and begin to connect. ConfigurationError names a credential that cannot be used.

        A provider that is away does not fail the start.
        """
        ...

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """Begin to send; *report* is called exactly once per delivery, never before this returns, in any order.

        What is told to neighbours with equal messages is rendered once. Payloads over the limit are ``Refused`` with
        the size, nothing is sent of them.
        """
        ...

    def render(self, delivery: Delivery) -> Rendered:
        """Show what ``send`` would put on the wire."""
        ...

    def health(self) -> Health:
        """Judge the sender's health by what was seen last, without asking the provider."""
        ...

    async def stop(self, timeout_s: float) -> None:
        """Let requests in flight end, then close; every delivery taken is reported before this returns."""
        ...
