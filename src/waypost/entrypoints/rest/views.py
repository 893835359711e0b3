"""Answer bodies: their types, and how they are made from what the ports give."""

from __future__ import annotations

from typing import Annotated, cast

from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.credential import slot_of
from waypost.domain.dedup import shown
from waypost.domain.delivery import Attempt, FailureClass, Receipt
from waypost.domain.device import Device, Platform, TokenUse
from waypost.domain.ids import DeviceId, NotificationId, format_id
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.status import DeliveryStatus, NotificationStatus
from waypost.domain.time import Instant, isoformat
from waypost.domain.vocabulary import Vocabulary, notification_word, receipt_word, waits
from waypost.entrypoints.submitting import Hash, Id
from waypost.ports.outbox import EntryState, OutboxEntry
from waypost.ports.views import DeadLetter, NotificationDetail, NotificationRecord

Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-01-31T09:00:00.000Z"])]
Cursor = Annotated[str | None, Meta(description="The `cursor` of the next page; null at the end.")]


class AttemptView(Struct, frozen=True):
    """One attempt: what the provider answered, and to which token (as a hash)."""

    at: Timestamp
    status: str
    code: str
    message: str
    token_hash: Hash
    credential: Annotated[str, Meta(description="The account that it was made with, such as `sms` or `sms/backup`.")]


class ReceiptView(Struct, frozen=True):
    """The outcome of a notification on one device."""

    n: int
    device_id: str
    channel: Channel | None
    status: DeliveryStatus
    attempt_count: int
    retries: int
    next_retry_at: Timestamp | None
    parked: Annotated[str | None, Meta(description="The condition that it waits for.")]
    provider_id: str | None
    code: Annotated[str | None, Meta(description="The provider's error code of the last attempt.")]
    failure_class: FailureClass | None
    reason: str | None
    dead: Annotated[bool, Meta(description="Whether it is kept as a dead letter.")]
    first_attempt_at: Timestamp | None
    last_attempt_at: Timestamp | None
    sent_at: Timestamp | None
    resolved_at: Timestamp | None
    attempts: tuple[AttemptView, ...]
    credential: Annotated[
        str | None,
        Meta(description="The account of the last attempt, such as `sms` or `sms/backup`; null if there was none."),
    ]


class NotificationSummary(Struct, frozen=True, kw_only=True):
    """A notification without its content.

    One without `user_id` may have been accepted but is not recorded yet: nothing more is known of it here.
    """

    id: Id
    status: NotificationStatus
    user_id: str | UnsetType = UNSET
    caller: str | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    urgency: Urgency | UnsetType = UNSET
    lane: Lane | UnsetType = UNSET
    guarantee: Guarantee | UnsetType = UNSET
    created_at: Timestamp
    expires_at: Timestamp | UnsetType = UNSET
    scheduled_at: Timestamp | None
    finished_at: Timestamp | None
    reason: str | None
    duplicate_of: Id | None
    round: Annotated[int, Meta(description="1, plus one for each replay.")]
    recorded: Annotated[
        bool,
        Meta(
            description="False with the `log` stack alone: not in the ledger yet. Asked of another machine than the one"
            " that accepted it, its `user_id` and all that follows from the request are missing then, and an id of"
            " these last seconds that nobody accepted reads the same."
        ),
    ]
    archived: Annotated[bool | UnsetType, Meta(description="True where it was read from the archive.")] = UNSET


class WordsView(Struct, frozen=True):
    """The statuses as another API names them; null if it has no word."""

    status: str | None
    receipts: Annotated[tuple[str | None, ...], Meta(description="In the order of `receipts`.")]


class NotificationView(Struct, frozen=True):
    """A notification with its content and everything that happened to it."""

    notification: NotificationSummary
    device_ids: tuple[str, ...]
    content: Content
    receipts: tuple[ReceiptView, ...]
    duplicates: Annotated[tuple[Id, ...], Meta(description="Its content duplicates, at most 100.")]
    words: Annotated[WordsView | UnsetType, Meta(description="Present if the query asks for them.")] = UNSET


class NotificationPage(Struct, frozen=True):
    """Notifications, newest first."""

    items: tuple[NotificationSummary, ...]
    next: Cursor


class DeadLetterView(Struct, frozen=True):
    """A delivery that failed for good."""

    notification: NotificationSummary
    receipt: ReceiptView


class DeadPage(Struct, frozen=True):
    """Dead letters, newest first."""

    items: tuple[DeadLetterView, ...]
    next: Cursor


class OutboxEntryView(Struct, frozen=True):
    """A notification, or one target of it, on its way to a topic."""

    notification_id: Id
    n: Annotated[int | None, Meta(description="The number of the target that is due; null for the whole notification.")]
    lane: Lane
    status: EntryState
    topics: Annotated[
        tuple[str, ...],
        Meta(
            description="The topics that it goes to, such as `email_notification`, where `outbox.topics` is channels."
        ),
    ]
    due_at: Annotated[
        Timestamp | None, Meta(description="The time until which it waits; null for what may be sent now.")
    ]
    added_at: Timestamp
    claimed_at: Timestamp | None
    published_at: Timestamp | None


class OutboxPage(Struct, frozen=True):
    """Entries, newest first, and how many of the app's have each status."""

    items: tuple[OutboxEntryView, ...]
    counts: dict[str, int]
    next: Cursor


class DeviceView(Struct, frozen=True):
    """A device; its token is secret, so only a hash is shown."""

    user_id: str
    device_id: str
    platform: Platform
    token_hash: Hash
    active: bool
    registered_at: Timestamp
    last_seen_at: Timestamp
    last_used_at: Timestamp | None
    token_updated_at: Timestamp
    app_version: str | None
    os_version: str | None
    locale: str | None
    token_use: TokenUse


class RegisteredDevice(Struct, frozen=True):
    """A device after registration."""

    device: DeviceView
    created: bool
    pushed_out: Annotated[tuple[DeviceId, ...], Meta(description="Devices that were deactivated by the cap per user.")]


class DeviceList(Struct, frozen=True):
    """A user's devices, newest registration first."""

    items: tuple[DeviceView, ...]


def summary(record: NotificationRecord) -> NotificationSummary:
    """Describe a notification as lists show it."""
    notification = record.notification
    if not record.content_known:
        return _unrecorded(record)
    return NotificationSummary(
        id=format_id(notification.id),
        status=record.status,
        user_id=notification.user_id,
        caller=notification.caller,
        kind=notification.kind,
        urgency=notification.urgency,
        lane=notification.lane,
        guarantee=notification.guarantee,
        created_at=isoformat(notification.created_at),
        expires_at=isoformat(notification.expires_at),
        scheduled_at=_moment(notification.scheduled_at),
        finished_at=_moment(record.finished_at),
        reason=record.reason,
        duplicate_of=_id(record.duplicate_of),
        round=record.round,
        recorded=record.recorded,
        archived=record.archived or UNSET,
    )


def _unrecorded(record: NotificationRecord) -> NotificationSummary:
    """Describe all that is known of an id that may be in the log."""
    return NotificationSummary(
        id=format_id(record.notification.id),
        status=record.status,
        created_at=isoformat(record.notification.created_at),
        scheduled_at=None,
        finished_at=None,
        reason=None,
        duplicate_of=None,
        round=record.round,
        recorded=record.recorded,
    )


def whole(detail: NotificationDetail, vocabulary: Vocabulary | None = None) -> NotificationView:
    """Describe a notification as asked for by id, with the words of *vocabulary* beside our own."""
    notification = detail.record.notification
    return NotificationView(
        notification=summary(detail.record),
        device_ids=notification.device_ids,
        content=notification.content,
        receipts=tuple(receipt_view(receipt) for receipt in detail.receipts),
        duplicates=tuple(format_id(each) for each in detail.duplicates),
        words=UNSET if vocabulary is None else _words(detail, vocabulary),
    )


def _words(detail: NotificationDetail, vocabulary: Vocabulary) -> WordsView:
    status = notification_word(vocabulary, detail.record.status, waiting=waits(detail.receipts))
    return WordsView(status, tuple(receipt_word(vocabulary, status_of(receipt)) for receipt in detail.receipts))


def status_of(receipt: Receipt) -> DeliveryStatus:
    """Return the status that a receipt shows; one that may be on the wire is pending until its deadline."""
    return DeliveryStatus.PENDING if receipt.is_intent else receipt.status


def dead_letter(letter: DeadLetter) -> DeadLetterView:
    """Describe a dead letter as lists show it."""
    return DeadLetterView(summary(letter.record), receipt_view(letter.receipt))


def outbox_entry(entry: OutboxEntry) -> OutboxEntryView:
    """Describe an entry of the outbox as lists show it."""
    return OutboxEntryView(
        format_id(entry.notification_id),
        entry.n,
        entry.lane,
        entry.state,
        entry.topics,
        _moment(entry.due_at),
        isoformat(entry.added_at),
        _moment(entry.claimed_at),
        _moment(entry.published_at),
    )


def receipt_view(receipt: Receipt) -> ReceiptView:
    """Describe a receipt with its attempts."""
    attempts = tuple(_attempt(attempt, receipt.channel) for attempt in receipt.attempts)
    return ReceiptView(
        n=receipt.n,
        device_id=receipt.device_id,
        channel=receipt.channel,
        status=status_of(receipt),
        attempt_count=receipt.attempt,
        retries=receipt.retries,
        next_retry_at=None if receipt.is_intent or receipt.parked else _moment(receipt.due_at),
        parked=receipt.parked,
        provider_id=receipt.provider_id,
        code=receipt.code,
        failure_class=receipt.failure_class,
        reason=receipt.reason,
        dead=receipt.dead,
        first_attempt_at=_moment(receipt.first_attempt_at),
        last_attempt_at=_moment(receipt.last_attempt_at),
        sent_at=_moment(receipt.sent_at),
        resolved_at=_moment(receipt.resolved_at),
        attempts=attempts,
        credential=attempts[-1].credential if attempts else None,
    )


def device_view(device: Device) -> DeviceView:
    """Describe a device without its secrets."""
    return DeviceView(
        user_id=device.user_id,
        device_id=device.device_id,
        platform=device.platform,
        token_hash=shown(device.token_hash),
        active=device.active,
        registered_at=isoformat(device.registered_at),
        last_seen_at=isoformat(device.last_seen_at),
        last_used_at=_moment(device.last_used_at),
        token_updated_at=isoformat(device.token_updated_at),
        app_version=device.app_version,
        os_version=device.os_version,
        locale=device.locale,
        token_use=cast("TokenUse", device.token_use),  # or a newer version's word, as it stands
    )


def _attempt(attempt: Attempt, channel: Channel | None) -> AttemptView:
    said = attempt.status, attempt.code, attempt.message, shown(attempt.token_hash)
    return AttemptView(isoformat(attempt.at), *said, slot_of(channel or Channel(""), attempt.credential))


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else isoformat(instant)


def _id(notification_id: NotificationId | None) -> str | None:
    return None if notification_id is None else format_id(notification_id)
