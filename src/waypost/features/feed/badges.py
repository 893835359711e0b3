"""Badges: the number on an app's icon is how many entries of the feed are unread, with the one that is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from waypost.channels.inapp.settings import CHANNEL, InappSettings
from waypost.config import Config
from waypost.domain.address import Address
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.content import Kind
from waypost.domain.device import Device
from waypost.domain.ids import AppId, NotificationId, UserId
from waypost.domain.message import Message
from waypost.domain.notification import Notification
from waypost.domain.recipient import Recipient
from waypost.features.parts import Ground
from waypost.ports.feed import Feed, UnreadQuery

FEATURE: Final = "feed"
ON_THE_WAY_S: Final = 30.0
"""Seconds within which what was sent here has come into its feed, or does not come any more."""
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


async def facts(ground: Ground, notifications: Sequence[Notification]) -> Sequence[int | None]:
    """Count for each of *notifications* what is unread once it is there; None where it gets no number of ours."""
    on_the_way: OnTheWay = ({} if ground.memory is None else ground.memory).setdefault(OnTheWay, OnTheWay())
    counted = [each for each in notifications if wants_badge(ground.config, each)]
    badges = await count(ground.store.feed, counted, on_the_way, ground.clock.monotonic()) if counted else {}
    return [badges.get(each.id) for each in notifications]


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
    badge: int | None = recipient.facts.get(FEATURE)
    if badge is None or not isinstance(address, Device):
        return message
    return replace(message, content=replace(message.content, badge=badge))


def counts_badges(config: Config) -> bool:
    """Tell whether any app has its badges counted."""
    return any(_settings(config, app).badge for app in config.apps)


def comes_into_feed(steps: Sequence[ChannelStep]) -> bool:
    """Tell whether what names *steps* comes into the feed whatever becomes of other channels."""
    for step in steps:
        if step.to == CHANNEL:
            return True
        if step.until is not None:
            return False
    return False


def wants_badge(config: Config, notification: Notification) -> bool:
    content = notification.content
    if notification.kind is Kind.SILENT or content.to is not None or content.badge is not None:
        return False
    return _settings(config, notification.app).badge and any(step.to != CHANNEL for step in content.channels or _PUSH)


def _settings(config: Config, app: AppId) -> InappSettings:
    found = config.apps[app].senders.get(CHANNEL)
    return found if isinstance(found, InappSettings) else _NONE


def _user(notification: Notification) -> User:
    return notification.app, notification.user_id


_PUSH: Final = (ChannelStep("push"),)
_NONE: Final = InappSettings()
