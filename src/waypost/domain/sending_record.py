"""The second record of a notification, which its senders keep beside the store in the profile ``simplens``."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from waypost.domain.time import Instant


class RecordStatus(StrEnum):
    """A status that the record has for a notification."""

    PROCESSING = "processing"
    DELIVERED = "delivered"
    FAILED = "failed"


class SendingRecord(Struct, frozen=True):
    """The record of one notification."""

    status: RecordStatus
    retry_count: int
    updated_at: Instant
    expires_at: Instant | None = None
    """The end of the round that it is about, by which a replay is told from what was before; None: of any."""

    def is_of(self, expires_at: Instant) -> bool:
        """Tell whether it is about the round that ends then."""
        return self.expires_at in (None, expires_at)
