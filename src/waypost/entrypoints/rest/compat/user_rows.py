"""Rows of notifications in the user API, and the answers that hold them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from waypost.domain.content import Urgency
from waypost.domain.ids import NotificationId, created_at, format_id
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant, isoformat
from waypost.domain.vocabulary import Vocabulary, notification_word, waits
from waypost.entrypoints.rest.views import Timestamp
from waypost.entrypoints.submitting import Id
from waypost.ports.views import NotificationDetail

DEFAULT_TYPE = "general"
"""The type of a notification that was given none."""
_NO_TOKENS = "the user has no active tokens"


class Priority(StrEnum):
    """Three of the urgencies; ``critical`` is shown as ``high``."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class Status(StrEnum):
    """The status words of the user API (domain.vocabulary)."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    SENT = "sent"
    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Created(Struct, frozen=True):
    """An accepted notification."""

    id: Id
    status: Status
    created_at: Timestamp


class CreatedAnswer(Struct, frozen=True):
    """A successful answer."""

    data: Created
    success: bool = True


class NotificationRow(Struct, frozen=True):
    """A notification as its user sees it."""

    id: Id
    user_id: str
    title: str | None
    body: str | None
    data: dict[str, Any]
    type: str
    priority: Priority
    status: Status
    error_message: Annotated[str | None, Meta(description="The reasons why devices did not get it, joined.")]
    retry_count: Annotated[int, Meta(description="The highest number of retries among its devices.")]
    fcm_message_id: Annotated[
        str | None, Meta(description="The provider's message id, of the first device that has one.")
    ]
    scheduled_for: Timestamp | None
    sent_at: Timestamp | None
    read_at: Timestamp | None
    created_at: Timestamp


class NotificationAnswer(Struct, frozen=True):
    """A successful answer."""

    data: NotificationRow
    success: bool = True


class Pagination(Struct, frozen=True):
    """The position of a page."""

    page: int
    limit: int
    total: int
    has_more: bool


class NotificationList(Struct, frozen=True):
    """A page, newest first."""

    data: tuple[NotificationRow, ...]
    pagination: Pagination
    success: bool = True


def row(detail: NotificationDetail) -> NotificationRow:
    """Describe a notification; what differs by device is joined."""
    notification, receipts = detail.record.notification, detail.receipts
    content, urgency = notification.content, notification.urgency
    sent = [receipt.sent_at for receipt in receipts if receipt.sent_at is not None]
    provider_ids = [receipt.provider_id for receipt in receipts if receipt.provider_id]
    word = notification_word(Vocabulary.USER_API, detail.record.status, waiting=waits(receipts))
    return NotificationRow(
        id=format_id(notification.id),
        user_id=notification.user_id,
        title=content.title,
        body=content.body,
        data=content.data,
        type=content.type or DEFAULT_TYPE,
        priority=Priority.HIGH if urgency is Urgency.CRITICAL else Priority(urgency.value),
        status=Status(word or Status.PENDING),
        error_message=_error(detail),
        retry_count=max((receipt.retries for receipt in receipts), default=0),
        fcm_message_id=provider_ids[0] if provider_ids else None,
        scheduled_for=_moment(notification.scheduled_at),
        sent_at=_moment(min(sent)) if sent else None,
        read_at=_moment(detail.marked.read_at),
        created_at=shown_at(notification.id),
    )


def shown_at(notification_id: NotificationId) -> Timestamp:
    """Return when a notification was made, as its id says: the order of ids is that of lists."""
    return isoformat(created_at(notification_id))


def _error(detail: NotificationDetail) -> str | None:
    if detail.record.status is NotificationStatus.NO_TARGETS:
        return _NO_TOKENS
    reasons = [receipt.reason or receipt.code for receipt in detail.receipts if receipt.sent_at is None]
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason)) or detail.record.reason


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else isoformat(instant)
