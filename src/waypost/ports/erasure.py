"""Forgetting a person: all that the store knows of a user, except sums that must go on adding up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId, CallerId, NotificationId, UserId
from waypost.domain.time import Instant

ERASED_DEVICE = "erased"
"""The device of a receipt that belongs to nobody any more."""


class Erasure(Struct, frozen=True):
    """An order to forget a user, which stands until it is carried out."""

    id: NotificationId
    """The id, of the same kind as those of notifications."""
    app: AppId
    user_id: UserId
    tombstone: UserId
    """The tombstone, random and another for each erasure, in the place of the user in what stays."""
    asked_at: Instant
    """The time of the order. What came later is not erased: the user may be back."""

    def caller_after(self, caller: str) -> CallerId:
        """Name who called without naming the user: one who came with a token of their own is ``<issuer>:<subject>``."""
        issuer, colon, subject = caller.partition(":")
        return CallerId(f"{issuer}{colon}{self.tombstone if subject == self.user_id else subject}")


class Erasures(Protocol):
    """The store of orders to forget users, carried out in pages; each page may be repeated."""

    async def ask(self, erasure: Erasure) -> Erasure:
        """Store the order durably; return the one for this user that stands already, if any."""
        ...

    async def of(self, app: AppId, user: UserId) -> Erasure | None:
        """Return the order for this user that is not carried out yet."""
        ...

    async def standing(self, n: int, after: NotificationId | None = None) -> Sequence[Erasure]:
        """List at most *n* orders not carried out yet, the oldest first; those *after* an id, where it is given."""
        ...

    async def unfinished(self, erasure: Erasure, n: int) -> Sequence[NotificationId]:
        """List at most *n* notifications of the user that are not final."""
        ...

    async def blank(self, erasure: Erasure, n: int) -> int:
        """Take user, content and devices out of at most *n* final notifications and their receipts; how many it was.

        Ids, times, statuses and codes stay, and so does the balance.
        """
        ...

    async def delete(self, erasure: Erasure, n: int) -> int:
        """Delete at most *n* final notifications of the user, content and receipts too; how many it was."""
        ...

    async def strike(self, erasure: Erasure) -> None:
        """Remove the user from lists of bulk jobs."""
        ...

    async def finish(self, erasure: Erasure, at: Instant) -> None:
        """Mark an order as carried out, and remove the user's name from it."""
        ...
