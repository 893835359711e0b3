"""Badges: the number on an app's icon is how many entries of the feed are unread, with the one that is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.channels.fcm.settings import CHANNEL as FCM
from waypost.channels.inapp.settings import CHANNEL
from waypost.config import Config
from waypost.domain.address import Address
from waypost.domain.channel import APNS, PUSH
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Kind, Urgency
from waypost.domain.device import Device, Platform
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.message import Message
from waypost.domain.notification import Notification
from waypost.domain.recipient import Recipient
from waypost.features.feed.dismissing import CALLER, KEY
from waypost.features.feed.inapp import inapp_of
from waypost.features.parts import Ground
from waypost.ports.feed import Feed, UnreadQuery

FEATURE: Final = "feed"
ON_THE_WAY_S: Final = 30.0
"""Seconds within which what was sent here has come into its feed, or does not come any more."""
_BESIDE_A_BADGE: Final = {"aps": {"content-available": 1}}
_BY_APPLE: Final = {
    Platform("ios"): {APNS: _BESIDE_A_BADGE},
    Platform("ios_fcm"): {FCM: {"apns": {"payload": _BESIDE_A_BADGE}}},
}
"""What wakes an app on an iPhone for a push with a badge, by how the app is reached."""
USERS_LIMIT: Final = 10_000
"""The most users whose entries on the way are remembered."""

User = tuple[AppId, UserId]


class OnTheWay:
    """The entries that this process has sent to feeds, and that were not seen there yet.

    A notification that follows another at once counts it, too: a user's are sent by one process.
    """

    def __init__(self) -> None:
        self._since: dict[User, dict[NotificationId, float]] = {}

    def of(self, user: User, now_s: float) -> frozenset[NotificationId]:
        """Return those of *user*."""
        known = self._since.get(user, {})
        return frozenset(one for one, since_s in known.items() if now_s - since_s < ON_THE_WAY_S)

    def note(self, user: User, ids: Iterable[NotificationId], now_s: float) -> None:
        """Remember *ids*, all that are on the way to *user*."""
        known = self._since.pop(user, {})
        left = {one: known.get(one, now_s) for one in ids}
        if left:
            self._since[user] = left
        while len(self._since) > USERS_LIMIT:
            del self._since[next(iter(self._since))]


class Counted(Struct, frozen=True):
    """The number that a push carries."""

    unread: int
    is_shown: bool
    """Whether it is the badge of the app; else the app is told it alone."""


async def facts(ground: Ground, notifications: Sequence[Notification]) -> Sequence[Counted | None]:
    """Count for each of *notifications* what is unread once it is there; None where it gets no number of ours."""
    config = ground.config
    counted = [each for each in notifications if each.caller == CALLER or wants_badge(config, each)]
    if not counted:
        return [None] * len(notifications)
    on_the_way: OnTheWay = ({} if ground.memory is None else ground.memory).setdefault(OnTheWay, OnTheWay())
    unread = await count(ground.store.feed, counted, on_the_way, ground.clock.monotonic())
    shown = {each.id: Counted(unread[each.id], inapp_of(config, each.app).badge) for each in counted}
    return [shown.get(each.id) for each in notifications]


async def count(
    feed: Feed, notifications: Sequence[Notification], on_the_way: OnTheWay, now_s: float
) -> dict[NotificationId, int]:
    """Count for each of *notifications*, in their order: what is unread, what is on the way, and itself."""
    asked: dict[User, set[NotificationId]] = {}
    for each in notifications:
        asked.setdefault(_user(each), set(on_the_way.of(_user(each), now_s))).add(each.id)
    queries = [UnreadQuery(*user, frozenset(ids)) for user, ids in asked.items()]
    found = dict(zip(asked, await feed.unread(queries), strict=True))
    coming = {user: set(on_the_way.of(user, now_s)) - found[user].there for user in asked}
    badges: dict[NotificationId, int] = {}
    for each in notifications:
        user = _user(each)
        if comes_into_feed(each.content.channels) and each.id not in found[user].there:
            coming[user].add(each.id)
        badges[each.id] = found[user].unread + len(coming[user])
    for user, ids in coming.items():
        on_the_way.note(user, ids, now_s)
    return badges


def render(message: Message, address: Address, recipient: Recipient) -> Message:
    """Give the message for a device the number that was counted, unless the caller gave one."""
    counted: Counted | None = recipient.facts.get(FEATURE)
    if counted is None or not isinstance(address, Device):
        return message
    if message.kind is Kind.SILENT:
        return _of_reads(message, address, counted)
    return replace(message, content=replace(message.content, badge=counted.unread))


def _of_reads(message: Message, device: Device, counted: Counted) -> Message:
    """Give a push that tells of reads its number; an iPhone shows a badge for no push in the background.

    Source: Apple, "Sending notification requests to APNs": the type is ``alert`` where a badge is set.
    """
    data = {KEY: message.content.data[KEY] | {"badge": counted.unread}}
    content = replace(message.content, data=data)
    overrides = _BY_APPLE.get(device.platform)
    if overrides is None or not counted.is_shown:
        return replace(message, content=content)
    content = replace(content, badge=counted.unread, overrides=overrides)
    return replace(message, kind=Kind.VISIBLE, urgency=Urgency.LOW, content=content)


def is_used(config: Config) -> bool:
    """Tell whether any app has its badges counted, or its reads told."""
    return any(found.badge or found.dismiss for found in (inapp_of(config, app) for app in config.apps))


def comes_into_feed(steps: Sequence[ChannelStep]) -> bool:
    """Tell whether what names *steps* comes into the feed whatever becomes of other channels."""
    for step in steps:
        if step.to == CHANNEL:
            return True
        if step.until is not None:
            return False
    return False


def wants_badge(config: Config, notification: Notification) -> bool:
    """Tell whether the pushes of *notification* get a number of ours."""
    content = notification.content
    if notification.kind is Kind.SILENT or content.to is not None or content.badge is not None:
        return False
    return inapp_of(config, notification.app).badge and any(step.to != CHANNEL for step in content.channels or _PUSH)


def _user(notification: Notification) -> User:
    return notification.app, notification.user_id


_PUSH: Final = (ChannelStep(PUSH),)
