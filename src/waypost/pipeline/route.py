"""Route: from a leased item and its user's devices to deliveries, or the reasons why not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from waypost.domain.address import Address
from waypost.domain.channel import Channel
from waypost.domain.content import UNREADABLE, Content
from waypost.domain.credential import CredentialId
from waypost.domain.delivery import NOBODY, Delivery, FailureClass, OpenTarget, Target, is_expired
from waypost.domain.device import Device, Platform, token_use_of
from waypost.domain.message import message_of
from waypost.domain.routing import DEVICE_MOVED, NO_CREDENTIAL, OTHER_USE, route
from waypost.domain.settlement import Change, Dead, Expired, Suppressed
from waypost.domain.status import NotificationStatus
from waypost.domain.time import Instant
from waypost.ports.work import WorkItem

Channels = Mapping[Platform, Channel]
"""What is known here: the channel of each platform."""
Credentials = Mapping[Channel, CredentialId]
"""What one app can send with, by channel."""


class Plan(Struct, frozen=True):
    """What is to be done with one leased item."""

    item: WorkItem
    deliveries: tuple[Delivery, ...] = ()
    changes: tuple[Change, ...] = ()
    """Targets decided without sending."""
    targets: tuple[Target, ...] | None = None
    """The whole resolved list of fresh work."""
    verdict: NotificationStatus | None = None
    """The whole notification decided before it was routed."""


def plan(item: WorkItem, devices: Sequence[Device], channels: Channels, credentials: Credentials, now: Instant) -> Plan:
    """Decide what each target of *item* gets."""
    if item.notification.content is UNREADABLE:
        return _buried(item, "unreadable", "its stored content cannot be read", now)
    if item.open_targets is None:
        return _plan_fresh(item, devices, channels, credentials, now)
    return _plan_again(item, item.open_targets, devices, channels, credentials, now)


def _plan_fresh(
    item: WorkItem, devices: Sequence[Device], channels: Channels, credentials: Credentials, now: Instant
) -> Plan:
    notification = item.notification
    if is_expired(notification, 1, now):
        return Plan(item, verdict=NotificationStatus.EXPIRED)
    routed = route(notification, devices, channels, credentials)
    if not routed.targets:
        return Plan(item, targets=(), verdict=NotificationStatus.NO_TARGETS)
    message = message_of(notification)
    deliveries: list[Delivery] = []
    changes: list[Change] = []
    for target in routed.targets:
        address = routed.addresses.get(target.n)
        if address is not None and target.channel is not None:
            credential = credentials[target.channel]
            deliveries.append(Delivery(notification, target.n, target.channel, credential, address, message, attempt=1))
        else:
            changes.append(Change(target.n, 1, Suppressed(target.suppressed or DEVICE_MOVED), now))
    return Plan(item, tuple(deliveries), tuple(changes), routed.targets)


def _plan_again(
    item: WorkItem,
    open_targets: Sequence[OpenTarget],
    devices: Sequence[Device],
    channels: Channels,
    credentials: Credentials,
    now: Instant,
) -> Plan:
    notification = item.notification
    known = {device.device_id: device for device in devices if device.active}
    message = message_of(notification)
    deliveries: list[Delivery] = []
    changes: list[Change] = []
    for target in open_targets:
        if is_expired(notification, target.attempt + 1, now):
            changes.append(Change(target.n, target.attempt + 1, Expired(), now))
            continue
        found = _found(notification.content, known.get(target.device_id), channels, credentials)
        if isinstance(found, Suppressed):
            changes.append(Change(target.n, target.attempt + 1, found, now))
            continue
        address, channel = found
        tried = (target.attempt + 1, target.retries, target.throttles)
        credential = credentials[channel]
        deliveries.append(Delivery(notification, target.n, channel, credential, address, message, *tried))
    return Plan(item, tuple(deliveries), tuple(changes))


def _found(
    content: Content, device: Device | None, channels: Channels, credentials: Credentials
) -> tuple[Address, Channel] | Suppressed:
    """The device is read again: its new token is used; one that is gone, another's or of another use gets nothing."""
    if content.to is not None:
        return (content.to, content.to.channel) if content.to.channel in credentials else Suppressed(NO_CREDENTIAL)
    channel = None if device is None else channels.get(device.platform)
    if device is None or channel is None:
        return Suppressed(DEVICE_MOVED)
    if device.token_use is not token_use_of(content):
        return Suppressed(OTHER_USE)
    return (device, channel) if channel in credentials else Suppressed(NO_CREDENTIAL)


def poisoned(item: WorkItem, now: Instant) -> Plan:
    """The end of an item that killed its worker three times when it was alone: a dead letter."""
    return _buried(item, "poison", "processing it ended its worker three times", now)


def _buried(item: WorkItem, code: str, why: str, now: Instant) -> Plan:
    dead = Dead(code, why, FailureClass.TERMINAL, letter=True)
    if item.open_targets is None:
        return Plan(item, changes=(Change(0, 1, dead, now),), targets=(Target(0, NOBODY, None),))
    return Plan(item, changes=tuple(Change(each.n, each.attempt + 1, dead, now) for each in item.open_targets))
