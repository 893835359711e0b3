"""Plain examples of the domain's data."""

from __future__ import annotations

from typing import Any

import msgspec

from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Attempt, Delivery, Receipt, delivery_of
from waypost.domain.device import Device, Platform
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId
from waypost.domain.message import message_of
from waypost.domain.notification import Lane, Notification
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import DAY_MS, Instant, later

CHANNELS = {
    Platform("ios"): Channel("apns"),
    Platform("android"): Channel("fcm"),
    Platform("ios_fcm"): Channel("fcm"),
    Platform("web_fcm"): Channel("fcm"),
    Platform("web"): Channel("webpush"),
}
"""As our own plug-ins have them."""
NOW = Instant(1_800_000_000_000)
ATTEMPT = Attempt(NOW, "taken", "200", "", b"t" * 16)

_NOTIFICATION = Notification(
    id=NotificationId(b"n" * 16),
    app=AppId("demo"),
    caller=CallerId("orders"),
    user_id=UserId("ann"),
    content=Content(title="Order"),
    created_at=NOW,
    expires_at=later(NOW, DAY_MS),
    ttl_ms=DAY_MS,
    lane=Lane.NORMAL,
)
_DEVICE = Device(AppId("demo"), UserId("ann"), DeviceId("d"), Platform("ios"), "token", NOW, NOW, NOW)
_RECEIPT = Receipt(NotificationId(b"n" * 16), 0, DeviceId("d"), Channel("apns"), DeliveryStatus.PENDING, due_at=NOW)
_SAID = message_of(_NOTIFICATION)
_DELIVERY = delivery_of(_NOTIFICATION, 0, CredentialId(AppId("demo"), Channel("apns")), _DEVICE, _SAID, attempt=1)


def notification(**fields: Any) -> Notification:
    """A notification that differs in *fields*."""
    return msgspec.structs.replace(_NOTIFICATION, **fields)


def device(**fields: Any) -> Device:
    """A device that differs in *fields*."""
    return msgspec.structs.replace(_DEVICE, **fields)


def delivery(made: Notification = _NOTIFICATION, **fields: Any) -> Delivery:
    """A first attempt that differs in *fields*."""
    first = delivery_of(made, 0, _DELIVERY.credential, _DELIVERY.address, message_of(made))
    return msgspec.structs.replace(first, **fields)


def receipt(**fields: Any) -> Receipt:
    """An open receipt that differs in *fields*."""
    return msgspec.structs.replace(_RECEIPT, **fields)


def intent(**fields: Any) -> Receipt:
    """An intent for attempt 1."""
    return receipt(status=DeliveryStatus.UNKNOWN, attempt=1, due_at=later(NOW, 60_000), **fields)
