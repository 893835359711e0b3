"""A sender that is made anew while it sends, with another key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from waypost.domain.delivery import Delivery
from waypost.domain.ids import CredentialId
from waypost.ports.sender import Capabilities, Health, Rendered, Report, Sender

PARTING_S = 5.0
"""Beyond the longest that a request may take: for a sender that was replaced to end."""


class RenewableSender:
    """Stands for the sender of one credential, whichever it is at the moment (fulfils ports.sender.Sender)."""

    def __init__(self, first: Sender) -> None:
        self._current = first
        self._capabilities = self._lasting(first.capabilities)
        self._parting: dict[asyncio.Task[None], Sender] = {}
        """Those that were replaced and finish what they have in hand."""

    @property
    def credential(self) -> CredentialId:
        """See Sender."""
        return self._current.credential

    @property
    def capabilities(self) -> Capabilities:
        """See Sender."""
        return self._capabilities

    async def start(self) -> None:
        """See Sender."""
        await self._current.start()

    async def renew(self, make: Callable[[], Sender]) -> None:
        """Send with a new one from now on; what the one before has in hand it finishes.

        With a ConfigurationError the one before stays.
        """
        fresh = make()
        try:
            await fresh.start()
        except BaseException:
            await fresh.stop(0.0)
            raise
        before, self._current = self._current, fresh
        self._capabilities = self._lasting(fresh.capabilities)
        patience_s = before.capabilities.request_timeout_ms / 1000 + PARTING_S
        parting = asyncio.create_task(before.stop(patience_s))
        self._parting[parting] = before
        parting.add_done_callback(lambda over: self._parting.pop(over, None))

    def send(self, batch: Sequence[Delivery], report: Report) -> None:
        """See Sender."""
        self._current.send(batch, report)

    def render(self, delivery: Delivery) -> Rendered:
        """See Sender."""
        return self._current.render(delivery)

    def health(self) -> Health:
        """See Sender."""
        return self._current.health()

    async def stop(self, timeout_s: float) -> None:
        """See Sender; those before it have no more time than it."""
        hurried = [self._hurry(parting, before, timeout_s) for parting, before in self._parting.items()]
        await asyncio.gather(self._current.stop(timeout_s), *hurried)

    async def _hurry(self, parting: asyncio.Task[None], before: Sender, timeout_s: float) -> None:
        """Let *before* end within *timeout_s*, whatever it was promised."""
        await asyncio.wait([parting], timeout=timeout_s)
        if not parting.done():
            parting.cancel()
            await asyncio.wait([parting])
            await before.stop(0.0)

    def _lasting(self, capabilities: Capabilities) -> Capabilities:
        """*capabilities*, with scopes that are always those of the sender of the moment."""
        return capabilities if capabilities.scope_of is None else replace(capabilities, scope_of=self._scope_of)

    def _scope_of(self, delivery: Delivery) -> str:
        scope_of = self._current.capabilities.scope_of
        assert scope_of is not None, "the senders of a channel are alike"
        return scope_of(delivery)
