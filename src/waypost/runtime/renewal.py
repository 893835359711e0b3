"""A sender that is replaced while it sends, by one with another key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery
from waypost.ports.sender import Capabilities, Health, Rendered, Report, Sender

PARTING_S = 5.0
"""Seconds beyond the longest that a request may take, for a sender that was replaced to end."""


class RenewableSender:
    """The stand-in for whichever sender a credential has at the moment (fulfils ports.sender.Sender)."""

    def __init__(self, first: Sender) -> None:
        self._current = first
        self._capabilities = self._lasting(first.capabilities)
        self._parting: dict[asyncio.Task[None], Sender] = {}

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
        parting.add_done_callback(self._parting.pop)

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
        """See Sender; those before it have no more time than it has."""
        parting = {task: sender for task, sender in self._parting.items() if not task.done()}
        for task in parting:
            task.cancel()
        await asyncio.gather(*parting, return_exceptions=True)
        await asyncio.gather(*(sender.stop(timeout_s) for sender in (self._current, *parting.values())))

    def _lasting(self, capabilities: Capabilities) -> Capabilities:
        """Return *capabilities* with scopes that are always those of the sender of the moment."""
        return capabilities if capabilities.scope_of is None else replace(capabilities, scope_of=self._scope_of)

    def _scope_of(self, delivery: Delivery) -> str:
        scope_of = self._current.capabilities.scope_of
        assert scope_of is not None, "the senders of a channel are alike"
        return scope_of(delivery)
