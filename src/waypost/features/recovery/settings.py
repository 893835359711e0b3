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
    """The most notifications that one search takes up."""
    processing_stuck_s: Seconds = 300.0
    """Seconds after which a target that is due, and that nobody settles, counts as stuck."""
    pending_stuck_s: Seconds = 300.0
    """Seconds after which a notification that is due, and that nobody takes, counts as orphaned."""
    auto_retry: bool = True
    """Whether what no provider was asked for is offered to workers once more before there is an alert."""
    second_record: bool = False
    """Whether senders keep a record of each notification in `redis` as well, as simplens does; docs/recovery.md."""
    record_ttl_s: Annotated[int, Meta(ge=1, le=366 * 86_400)] = 86_400
    """Seconds for which that record says what became of a notification."""
    lock_ttl_s: Annotated[int, Meta(ge=1, le=86_400)] = 120
    """Seconds after which that record no longer says that a worker is at it."""
    keep_resolved_s: Annotated[int, Meta(ge=0, le=366 * 86_400)] = 86_400
    """Seconds for which resolved alerts are kept."""
