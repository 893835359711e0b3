"""Settings of recovery."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class RecoverySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the search for notifications that nobody moves."""

    poll_s: Seconds = 60.0
    """Seconds between two searches."""
    batch: Annotated[int, Meta(ge=1, le=1_000)] = 50
    """The most notifications of one search."""
    processing_stuck_s: Seconds = 300.0
    """Seconds after which a due target that nobody settles is stuck."""
    pending_stuck_s: Seconds = 300.0
    """Seconds after which a due notification that nobody takes is orphaned."""
    auto_retry: bool = True
    """Whether what no provider was asked for is offered to workers once more before an alert."""
    second_record: bool = False
    """Whether senders keep a record in `redis` as well; docs/recovery.md."""
    record_ttl_s: Annotated[int, Meta(ge=1, le=366 * 86_400)] = 86_400
    """Seconds for which that record is kept."""
    lock_ttl_s: Annotated[int, Meta(ge=1, le=86_400)] = 120
    """Seconds for which it says that a worker is at it."""
    keep_resolved_s: Annotated[int, Meta(ge=0, le=366 * 86_400)] = 86_400
    """Seconds for which resolved alerts are kept."""
