"""Where the store is and how hard it writes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class SqlSettings(Struct, frozen=True, kw_only=True):
    """One database."""

    url: str = "sqlite:///waypost.db"
    """Where everything is kept."""
    durability: Literal["power", "process"] = "power"
    """What an accepted notification outlives: a power failure, or only the end of the process."""
    lock_timeout_s: Annotated[float, Meta(gt=0)] = 2.0
    """How long a write waits for the write lock before it is refused as busy, seconds."""
    checkpoint_bytes: Annotated[int, Meta(ge=1 << 20)] = 8 << 20
    """Write-ahead log size from which it is folded back into the database."""
    reserve_bytes: Annotated[int, Meta(ge=0)] = 32 << 20
    """Disk space held back so that outcomes still fit when the disk is full."""
    dedup_slice_h: Annotated[int, Meta(ge=1, le=168)] = 6
    """Hours of deduplication keys kept in one table, dropped as a whole."""
