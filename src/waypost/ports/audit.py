"""The record of administrative orders: it is only added to, until it is old."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from waypost.domain.ids import AppId
from waypost.domain.time import Instant


class Act(StrEnum):
    """An administrative order that is audited."""

    KEY_MADE = "key.made"
    KEY_ROTATED = "key.rotated"
    KEY_REVOKED = "key.revoked"
    DEAD_REPLAYED = "dead.replayed"
    NOTIFICATION_CANCELLED = "notification.cancelled"
    NOTIFICATION_RESCHEDULED = "notification.rescheduled"
    NOTIFICATION_REPLAYED = "notification.replayed"
    DEDUP_FORGOTTEN = "dedup.forgotten"
    BULK_PAUSED = "bulk.paused"
    BULK_RESUMED = "bulk.resumed"
    BULK_CANCELLED = "bulk.cancelled"
    SCHEDULE_PUT = "schedule.put"
    SCHEDULE_PAUSED = "schedule.paused"
    SCHEDULE_RESUMED = "schedule.resumed"
    SCHEDULE_CHANGED = "schedule.changed"
    SCHEDULE_REMOVED = "schedule.removed"
    CAMPAIGN_PUT = "campaign.put"
    CAMPAIGN_UPLOADED = "campaign.uploaded"
    CAMPAIGN_APPROVED = "campaign.approved"
    CAMPAIGN_SCHEDULED = "campaign.scheduled"
    CAMPAIGN_PAUSED = "campaign.paused"
    CAMPAIGN_RESUMED = "campaign.resumed"
    CAMPAIGN_CANCELLED = "campaign.cancelled"
    SERIES_PUT = "series.put"
    SERIES_REMOVED = "series.removed"
    USER_ERASED = "user.erased"
    USER_CHANGED = "user.changed"
    PREFERENCES_CHANGED = "preferences.changed"
    DEVICE_REGISTERED = "device.registered"
    DEVICE_DEACTIVATED = "device.deactivated"
    TEMPLATE_WRITTEN = "template.written"
    TEMPLATE_PUBLISHED = "template.published"
    TEMPLATE_RETIRED = "template.retired"
    TEMPLATE_TRIED = "template.tried"
    PROVIDER_TRIED = "provider.tried"
    ALERT_RETRIED = "alert.retried"
    ALERT_RESOLVED = "alert.resolved"
    TOPIC_PUT = "topic.put"
    TOPIC_CHANGED = "topic.changed"
    TOPIC_REMOVED = "topic.removed"
    SEGMENT_PUT = "segment.put"
    SEGMENT_REMOVED = "segment.removed"
    MESSAGE_SEEN = "message.seen"
    ACCOUNT_PUT = "account.put"
    ACCOUNT_REMOVED = "account.removed"
    ACCOUNT_LOGGED_IN = "account.logged_in"
    ACCOUNT_REFUSED = "account.refused"
    ARCHIVE_FILE_GIVEN_UP = "archive_file.given_up"


class Ordered(Struct, frozen=True):
    """An administrative order as recorded: no secret, no content, and no user is in it."""

    at: Instant
    app: AppId
    by: str
    """The caller; on the machine itself ``cli:`` and the user of the system."""
    origin: str
    """The address that the order came from; the host's name where it was given on the machine."""
    act: Act
    subject: str
    """The id, or the prefix of the key, that it was about."""


class AuditEntry(Struct, frozen=True):
    """An order at its position in the record."""

    seq: int
    """The number, which only grows."""
    ordered: Ordered


class AuditQuery(Struct, frozen=True):
    """A filter for the entries of an app, newest first."""

    app: AppId
    act: Act | None = None
    by: str | None = None
    before: int | None = None
    """The number below which to list."""
    limit: int = 50


class Audit(Protocol):
    """The record of administrative orders."""

    async def record(self, orders: Sequence[Ordered]) -> None:
        """Add *orders*; durable when it returns, so that it is called before what was ordered is done."""
        ...

    async def page(self, query: AuditQuery) -> Sequence[AuditEntry]:
        """Return the entries that *query* asks for."""
        ...

    async def drop_before(self, before: Instant, n: int) -> int:
        """Delete at most *n* entries from before *before*; return how many it was."""
        ...
