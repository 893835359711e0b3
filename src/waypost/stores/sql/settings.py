"""Settings of the store."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

_POSTGRES = ("postgresql://", "postgres://")


def is_postgres(url: str) -> bool:
    """Tell whether *url* names a PostgreSQL database."""
    return url.startswith(_POSTGRES)


class Durability(StrEnum):
    """The failure that an acknowledged request survives: of power (`power`), or only of the process (`process`)."""

    POWER = "power"
    PROCESS = "process"


class SqlSettings(Struct, frozen=True):
    """The store; *url* is ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``postgresql://user@host/database``."""

    url: str
    """Where everything is kept. `postgresql://` names every host that may be the primary, and its password is
    `${NAME}`."""
    run_dir: str = "waypost.run"
    """With PostgreSQL, a folder that one machine's workers share. Default under systemd: in `STATE_DIRECTORY`, or
    `RUNTIME_DIRECTORY`."""
    durability: Durability = Durability.POWER
    """What an answered request survives: a power failure, or only a crash of the process."""
    lock_timeout_s: float = 2.0
    """Seconds that a write waits before it is refused; load is shed from half of it on."""
    checkpoint_bytes: int = 8 * 1024 * 1024
    """Bytes of the write-ahead log above which it is copied into the database; up to eight times as many while
    critical notifications are written."""
    reserve_bytes: int = 32 * 1024 * 1024
    """Bytes reserved on the disk, so that outcomes can be written when it is full."""
    dedup_partition_h: int = 6
    """Hours of dedup keys in one table, which is dropped whole."""
    commit_rows: int = 512
    """Outcomes of so many notifications share a commit, and four times as many accepted ones; reversed while outcomes
    are late."""
    withdraw_timeout_s: float = 2.0
    """Seconds in which a notification's worker must answer a cancellation."""


class OutboxSettings(Struct, frozen=True, kw_only=True):
    """Settings of what others hear of work on PostgreSQL; delivery does not wait for it."""

    to: Literal["redis", "kafka"] | None = None
    """Where what becomes leasable is published. Unset: nowhere."""
    topics: Literal["lanes", "channels"] = "lanes"
    """A topic for each lane, or each family of channels (`push_notification`, `email_notification`)."""
    poll_s: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Seconds between two looks for entries that no wake-up announced."""
    batch: Annotated[int, Meta(ge=1, le=10_000)] = 500
    """Entries published in one batch."""
    retention_s: Annotated[float, Meta(gt=0)] = 300.0
    """Seconds for which a published entry can be asked for."""
