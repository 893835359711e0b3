"""What the owner of a notifications service says of their stream and their tables."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class StreamSettings(Struct, frozen=True, kw_only=True):
    """One stream, and the tables beside it."""

    stream: str = "stream.notifications.jobs"
    """The Redis stream that jobs are read from."""
    group: str = "notifications-service"
    """Its consumer group; made where it is missing, and then it begins with the stream's first entry."""
    min_idle_ms: Annotated[int, Meta(ge=100, le=86_400_000)] = 30_000
    """How long an entry must have been left alone until it is delivered again, and how often that is looked for."""
    max_deliveries: Annotated[int, Meta(ge=1, le=1_000)] = 5
    """The delivery of an entry that is not tried any more: it is acknowledged and given up."""


class TableSettings(Struct, frozen=True, kw_only=True):
    """Address of the database, and names of its tables."""

    url: str
    """The PostgreSQL database."""
    token_table: str = "public.device_token"  # noqa: S105 - a name
    """The existing table of tokens: read, and dead tokens deleted from it."""
    token_columns: dict[str, str] = {}
    """Its columns ``id``, ``user`` and ``token``, where they have other names than these or ``userId``."""
    log_table: str = "notifications.notification_log"
    """The table that says what became of each job; made where it is missing."""
    log_columns: dict[str, str] = {}
    """Its columns, where they have other names than in the documentation."""
