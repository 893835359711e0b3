"""Routing: which of a user's devices get this notification, and why the others do not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from waypost.domain.address import Address
from waypost.domain.audience import Audience
from waypost.domain.channel import Channel
from waypost.domain.delivery import Target
from waypost.domain.device import Device, Platform, token_use_of
from waypost.domain.ids import DeviceId
from waypost.domain.notification import Notification

UNKNOWN_PLATFORM = "unknown_platform"
NO_CREDENTIAL = "no_credential"
DEVICE_NOT_FOUND = "device_not_found"
OTHER_USE = "other_token_use"
DEVICE_MOVED = "device_gone"


class Routed(Struct, frozen=True):
    """The numbered targets of a notification and the addresses of those that are not suppressed."""

    targets: tuple[Target, ...]
    addresses: Mapping[int, Address]
    """By target number."""


def route(
    notification: Notification,
    devices: Sequence[Device],
    channels: Mapping[Platform, Channel],
    credentials: Collection[Channel],
) -> Routed:
    """Number the targets of *notification*; *credentials* are the channels that its app has one for.

    A named device that the user does not have, a device of an unknown platform and one whose channel has no
    credential become suppressed targets, with the reason: nothing is skipped silently. A token for another use, such
    as a live activity's, is another address of a device: it is a target only where it is named.
    """
    to = notification.content.to
    if to is not None:
        return _to_listeners(to, credentials)
    wanted = notification.device_ids
    use = token_use_of(notification.content)
    owned = [device for device in devices if device.active and (not wanted or device.device_id in wanted)]
    targets: list[Target] = []
    behind: dict[int, Device] = {}
    for device in owned:
        if device.token_use is use:
            target = _target(len(targets), device, channels, credentials)
            if target.suppressed is None:
                behind[target.n] = device
            targets.append(target)
    if wanted:
        targets += _missing(wanted, targets, {device.device_id for device in owned})
    return Routed(tuple(targets), behind)


def _to_listeners(to: Audience, credentials: Collection[Channel]) -> Routed:
    if to.channel not in credentials:
        return Routed((Target(0, DeviceId(to.label), to.channel, NO_CREDENTIAL),), {})
    return Routed((Target(0, DeviceId(to.label), to.channel),), {0: to})


def _missing(wanted: Sequence[DeviceId], found: Sequence[Target], owned: Collection[DeviceId]) -> Iterator[Target]:
    """The devices named that are none of the user's, or not for this use."""
    known = {target.device_id for target in found}
    missing = (device_id for device_id in dict.fromkeys(wanted) if device_id not in known)
    for n, device_id in enumerate(missing, start=len(found)):
        yield Target(n, device_id, None, OTHER_USE if device_id in owned else DEVICE_NOT_FOUND)


def _target(n: int, device: Device, channels: Mapping[Platform, Channel], credentials: Collection[Channel]) -> Target:
    channel = channels.get(device.platform)
    if channel is None:
        return Target(n, device.device_id, None, UNKNOWN_PLATFORM)
    return Target(n, device.device_id, channel, None if channel in credentials else NO_CREDENTIAL)
