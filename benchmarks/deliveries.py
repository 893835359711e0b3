"""Deliveries for the benches of senders alone."""

from __future__ import annotations

from collections.abc import Sequence

from waypost.bench.registry import APP
from waypost.domain.channel import Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import Delivery, delivery_of
from waypost.domain.device import Device, Platform, SubscriptionKeys
from waypost.domain.ids import AppId, CallerId, DeviceId, UserId
from waypost.domain.message import Message
from waypost.domain.notification import Lane, Notification
from waypost.domain.time import DAY_MS, later
from waypost.runtime.clock import RandomIds, SystemClock

_CLOCK = SystemClock()
_IDS = RandomIds(_CLOCK)
USER = UserId("user")


def content(number: int) -> Content:
    """Make a content with a text of its own, as the load generator has it."""
    text = f"Number {number} was left at the front door."
    return Content(title="Your parcel is here", body=text, data={"mark": str(number)})


def notification(number: int) -> Notification:
    """Make a notification with a content of its own."""
    now = _CLOCK.now()
    return Notification(
        id=_IDS.next(1)[0],
        app=AppId(APP),
        caller=CallerId("bench"),
        user_id=USER,
        content=content(number),
        created_at=now,
        expires_at=later(now, DAY_MS),
        ttl_ms=DAY_MS,
        lane=Lane.NORMAL,
    )


def device(n: int, platform: str, token: str, keys: SubscriptionKeys | None = None) -> Device:
    """Make the *n*-th device of the user, registered just now."""
    at = _CLOCK.now()
    return Device(
        app=AppId(APP),
        user_id=USER,
        device_id=DeviceId(f"device-{n}"),
        platform=Platform(platform),
        token=token,
        registered_at=at,
        last_seen_at=at,
        token_updated_at=at,
        keys=keys,
    )


def first_attempts(channel: str, devices: Sequence[Device], first: int, many: int) -> list[Delivery]:
    """Make so many deliveries from number *first* on, each with a content of its own, to *devices* in turn.

    What a sender is given, and no more: no notification is made for it.
    """
    now, credential = _CLOCK.now(), CredentialId(AppId(APP), Channel(channel))
    return [
        Delivery(
            notification_id,
            0,
            credential,
            devices[number % len(devices)],
            Message(now, later(now, DAY_MS), DAY_MS, Kind.VISIBLE, Urgency.NORMAL, content(number)),
            attempt=1,
        )
        for number, notification_id in enumerate(_IDS.next(many), first)
    ]


def delivery(one: Notification, n: int, channel: str, platform: str, token: str, message: Message) -> Delivery:
    """Make the first attempt of *one* to its *n*-th device, which shares *message* with others."""
    return delivery_of(one, n, CredentialId(one.app, Channel(channel)), device(n, platform, token), message)
