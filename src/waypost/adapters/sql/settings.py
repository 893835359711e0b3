"""What an operator can choose about the store."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

_POSTGRES = ("postgresql://", "postgres://")


def is_postgres(url: str) -> bool:
    """Whether *url* names a PostgreSQL database."""
    return url.startswith(_POSTGRES)


class Durability(StrEnum):
    """What an answered request survives: the loss of power, or of the process alone."""

    POWER = "power"
    PROCESS = "process"


class SqlSettings(Struct, frozen=True):
    """The store; *url* is ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``postgresql://user@host/database``."""

    url: str
    """Where everything is kept; a relative SQLite file lies beside the configuration file. With `postgresql://` put the
    password into `${ENV}`, and name every host that may be the primary."""
    run_dir: str = "waypost.run"
    """On PostgreSQL the folder of what the workers of one machine share (locks, counters); with SQLite it lies beside
    the database."""
    durability: Durability = Durability.POWER
    """What an answered request survives: the loss of power, or of the process alone."""
    lock_timeout_s: float = 2.0
    """How long a write waits for its turn before the request is refused; from half of it on, overload is shed."""
    checkpoint_bytes: int = 8 * 1024 * 1024
    """The size of the write-ahead log above which it is copied into the database."""
    reserve_bytes: int = 32 * 1024 * 1024
    """Room kept on the disk so that outcomes can still be written when it is full."""
    dedup_slice_h: int = 6
    """Hours of dedup keys that share a table; a table is dropped whole when its last window is over."""
    commit_rows: int = 256
    """Outcomes of about so many notifications share a commit, and four times as many that are accepted: what the next
    request in line has to wait for. While outcomes are late it is the other way round."""
    withdraw_timeout_s: float = 2.0
    """How long the worker that owns a notification may take to answer that it was withdrawn."""


class OutboxSettings(Struct, frozen=True, kw_only=True):
    """What others hear of work on PostgreSQL; delivery does not wait for it."""

    to: Literal["redis", "kafka"] | None = None
    """Where what becomes leasable is published, for others to read; unset, nowhere."""
    poll_s: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """How often a worker looks for entries that nobody woke it for, seconds."""
    batch: Annotated[int, Meta(ge=1, le=10_000)] = 500
    """Entries claimed and published at once."""
    retention_s: Annotated[float, Meta(gt=0)] = 300.0
    """How long an entry can be asked for after it was published, seconds."""
