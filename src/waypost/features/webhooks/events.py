"""Status events: from a change in the journal to the body that a receiver is told. Pure."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from waypost.channels.webhook.settings import CHANNEL, ToldStatus
from waypost.domain.audience import Audience
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.ids import CallerId, NotificationId, UserId, format_id, next_ids
from waypost.domain.moves import DeliveryMoved, Moved, NotificationMoved
from waypost.domain.notification import Lane, Notification
from waypost.domain.status import FINAL, DeliveryStatus, NotificationStatus
from waypost.domain.time import DAY_MS, isoformat, later
from waypost.ports.views import NotificationDetail
from waypost.stores.sql.webhook_queue import WebhookEvent

CALLER: Final = CallerId("webhooks")
"""Who orders the notifications that tell of others."""
URL_KIND: Final = "url"
_OWN_USERS: Final = f"{CHANNEL}:{URL_KIND}:"
RETRY_POLICY: Final = "s4_webhook"
"""Three attempts, 1 s and 2 s apart (requirement S4-43)."""
TTL_MS: Final = DAY_MS
"""Milliseconds for which an event is worth telling: while a receiver's breaker is open it waits and spends no attempt.
"""
_TOLD_OF_DELIVERIES: Final = frozenset(
    {DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.OPENED, DeliveryStatus.FAILED}
)


def is_own(move: Moved) -> bool:
    """Tell whether *move* is of a message to a URL itself: of those nothing is told, or it would never end."""
    return move.user_id.startswith(_OWN_USERS)


def is_told(move: Moved, wanted: frozenset[ToldStatus]) -> bool:
    """Tell whether *move* is one of those told: a final status, or a delivery that was sent, confirmed or failed."""
    if move.after not in (FINAL if isinstance(move, NotificationMoved) else _TOLD_OF_DELIVERIES):
        return False
    return move.after is not NotificationStatus.DEDUPLICATED and (not wanted or ToldStatus(move.after.value) in wanted)


def event_of(move: Moved, seq: int, detail: NotificationDetail, url: str) -> WebhookEvent:
    """Make the event of *move*; its id is the same whenever it is made."""
    body = msgspec.json.encode(_body(move, detail))
    return WebhookEvent(_id_of(move), move.notification_id, seq, move.app, url, move.at, body)


def notification_of(event: WebhookEvent) -> Notification:
    """Make the notification that tells *event*; it comes to the URL, and to no user."""
    to = Audience(CHANNEL, URL_KIND, event.url)
    return Notification(
        id=event.id,
        app=event.app,
        caller=CALLER,
        user_id=UserId(to.label),
        content=Content(to=to, overrides={CHANNEL: msgspec.json.decode(event.body)}),
        created_at=event.at,
        expires_at=later(event.at, TTL_MS),
        ttl_ms=TTL_MS,
        lane=Lane.LOW,
        kind=Kind.SILENT,
        urgency=Urgency.LOW,
        retry_policy=RETRY_POLICY,
    )


def _body(move: Moved, detail: NotificationDetail) -> dict[str, object]:
    named = format_id(move.notification_id)
    is_delivery = isinstance(move, DeliveryMoved)
    body: dict[str, object] = {
        "type": "delivery.status" if is_delivery else "notification.status",
        "timestamp": isoformat(move.at),
        "occurred_at": isoformat(move.at),
        "request_id": named,
        "notification_id": named,
        "client_id": _client_of(detail.record.notification),
        "app": move.app,
        "kind": detail.record.notification.kind.value,
        "status": move.after.value.upper(),
        "channel": _channel(move, detail),
        "message": move.reason or _MESSAGES.get(move.after.value, ""),
    }
    if isinstance(move, DeliveryMoved):
        body |= {"target": move.n, "attempt": move.attempt, "code": move.code}
    return body


def _client_of(told: Notification) -> str:
    """Name who ordered it; of a user's own token (`login:alice`) the issuer alone, since this outlives the user."""
    return told.caller.removesuffix(f":{told.user_id}")


def _channel(move: Moved, detail: NotificationDetail) -> str | None:
    """Name the channel of the target, or of the one that reached the user best."""
    if isinstance(move, DeliveryMoved):
        return next((str(each.channel) for each in detail.receipts if each.n == move.n and each.channel), None)
    for status in (DeliveryStatus.OPENED, DeliveryStatus.DELIVERED, DeliveryStatus.SENT):
        for each in detail.receipts:
            if each.status is status and each.channel is not None:
                return str(each.channel)
    return next((str(each.channel) for each in detail.receipts if each.channel), None)


_MESSAGES: Final = {
    "sent": "the provider took it",
    "partial": "some targets were taken by their providers",
    "delivered": "the device confirmed it",
    "opened": "the user opened it",
    "failed": "it could not be sent",
    "expired": "its time was over before it could be sent",
    "suppressed": "it was decided not to send it",
    "cancelled": "it was withdrawn",
    "no_targets": "the user has no device or address for it",
    "unknown": "the provider may or may not have it",
}


def _id_of(move: Moved) -> NotificationId:
    n = move.n if isinstance(move, DeliveryMoved) else -1
    said = b"%s %d %s %d" % (move.notification_id, n, move.after.value.encode(), move.at)
    (made,), _ = next_ids(move.at, 1, hashlib.sha256(said).digest()[:10], 0)
    return made
