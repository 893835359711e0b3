"""Dedup keys in two states, for stacks whose queue cannot claim them in its own write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from waypost.domain.dedup import Claim
from waypost.domain.ids import NotificationId
from waypost.domain.time import SECOND_MS
from waypost.ports.work import Conflicting, Duplicate, InProgress, NewNotification

HOLD_MS = 30 * SECOND_MS
"""Milliseconds that a key waits for its request to become durable."""

Held = NotificationId | Duplicate | Conflicting | InProgress
"""The id under which a request may become durable, or the reason why it may not."""


class Holds(Protocol):
    """A store of dedup keys: a key is held while its request becomes durable, then done until its window ends."""

    async def hold(self, arrivals: Sequence[NewNotification]) -> list[Held]:
        """Hold the keys of each arrival for HOLD_MS, or say what they stand for; one answer each, in order.

        The id is the arrival's own, or that of a hold that is over without having become done: whoever repeats takes
        it over. The second of two arrivals with the same key is the first's duplicate. An idempotency key counts before
        a content key, and stands for the first where that one is done. All of it or nothing: Unavailable.
        """
        ...

    async def confirm(self, claims: Sequence[tuple[Claim, NotificationId]]) -> None:
        """Begin the windows of these claims, since their notifications are durable under these ids."""
        ...
