"""Deliveries for the benches of senders alone."""

from __future__ import annotations

from waypost.bench.registry import APP
from waypost.domain.channel import Channel
from waypost.domain.content import Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, delivery_of
from waypost.domain.device import Device, Platform, SubscriptionKeys
from waypost.domain.ids import AppId, CallerId, DeviceId, UserId
from waypost.domain.message import Message, message_of
from waypost.domain.notification import Lane, Notification
from waypost.domain.time import DAY_MS, later
from waypost.runtime.clock import RandomIds, SystemClock

_CLOCK = SystemClock()
_IDS = RandomIds(_CLOCK)
USER = UserId("user")


def notification(number: int) -> Notification:
    """One with a text of its own, as the load generator has it."""
    now = _CLOCK.now()
    text = f"Number {number} was left at the front door."
    return Notification(
        id=_IDS.next(1)[0],
        app=AppId(APP),
        caller=CallerId("bench"),
        user_id=USER,
        content=Content(title="Your parcel is here", body=text, data={"mark": str(number)}),
        created_at=now,
        expires_at=later(now, DAY_MS),
        ttl_ms=DAY_MS,
        lane=Lane.NORMAL,
    )


def delivery(
    one: Notification,
    n: int,
    channel: str,
    platform: str,
    token: str,
    keys: SubscriptionKeys | None = None,
    message: Message | None = None,
) -> Delivery:
    """The first attempt of *one* to its *n*-th device; *message* is given where several devices share it."""
    at = one.created_at
    return delivery_of(
        one,
        n,
        CredentialId(one.app, Channel(channel)),
        Device(
            app=one.app,
            user_id=USER,
            device_id=DeviceId(f"device-{n}"),
            platform=Platform(platform),
            token=token,
            registered_at=at,
            last_seen_at=at,
            token_updated_at=at,
            keys=keys,
        ),
        message or message_of(one),
    )
