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
