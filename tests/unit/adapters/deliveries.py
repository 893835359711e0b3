"""Deliveries to try a sender with."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.unit.domain.made import CHANNELS
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, delivery_of
from waypost.domain.device import Device, Platform, SubscriptionKeys
from waypost.domain.ids import AppId, CallerId, DeviceId, NotificationId, UserId, next_ids
from waypost.domain.message import message_of
from waypost.domain.notification import Notification, lane_of
from waypost.domain.time import HOUR_MS, Instant, later
from waypost.http2 import Answer

NOW = Instant(1_800_000_000_000)
TEXT_ID = "01a31819-5000-7123-8456-789abcdef012"
NID = NotificationId(bytes.fromhex(TEXT_ID.replace("-", "")))
IOS_TOKEN = "ab" * 32
ANDROID_TOKEN = "dGVzdC1pbnN0YWxsYXRpb24:APA91b" + "x" * 120


def notification(
    content: Content | None = None,
    *,
    kind: Kind = Kind.VISIBLE,
    urgency: Urgency = Urgency.NORMAL,
    ttl_ms: int = HOUR_MS,
    created_at: Instant = NOW,
    notification_id: NotificationId = NID,
) -> Notification:
    """One notification of the app ``demo``."""
    return Notification(
        id=notification_id,
        app=AppId("demo"),
        caller=CallerId("shop"),
        user_id=UserId("u1"),
        content=content or Content(title="Hello", body="World"),
        created_at=created_at,
        expires_at=later(created_at, ttl_ms),
        ttl_ms=ttl_ms,
        lane=lane_of(kind, urgency),
        kind=kind,
        urgency=urgency,
    )


def fresh_ids(count: int, now: Instant = NOW) -> list[NotificationId]:
    """Ids that differ."""
    return next_ids(now, count, bytes(range(10)), 0)[0]


def delivery(
    platform: Platform,
    token: str,
    what: Notification | None = None,
    *,
    keys: SubscriptionKeys | None = None,
    **fields: Any,
) -> Delivery:
    """The first attempt to one device."""
    what = what or notification()
    channel = CHANNELS.get(platform, Channel(platform))
    device = Device(
        app=what.app,
        user_id=what.user_id,
        device_id=DeviceId("d1"),
        platform=platform,
        token=token,
        registered_at=what.created_at,
        last_seen_at=what.created_at,
        token_updated_at=what.created_at,
        keys=keys,
    )
    first = delivery_of(what, 0, CredentialId(AppId("demo"), channel), device, message_of(what))
    return msgspec.structs.replace(first, **fields)


def answer(status: int, body: bytes = b"", **headers: str) -> Answer:
    """A provider's answer; underscores in header names become hyphens."""
    fields = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    return Answer(status, fields, body)
