"""Degrading: what is over a cap that says so is found in the feed alone, where it disturbs nobody.

A notification that names the feed itself is there already. Of another one a copy is accepted for the feed, under an id
that follows from its own: whoever dies before it is recorded with that id makes the same copy again, once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from msgspec.structs import replace

from waypost.channels.inapp.settings import CHANNEL as FEED
from waypost.domain.channel_steps import ChannelStep
from waypost.domain.ids import NotificationId, created_at, format_id, next_ids
from waypost.domain.notification import Notification, lane_of
from waypost.domain.routing import place_of
from waypost.domain.settlement import Suppressed
from waypost.domain.time import Instant
from waypost.features.parts import Ground
from waypost.features.preferences.deciding import DEGRADED, DEGRADED_CALLER
from waypost.ports.work import NewNotification, Unwritten


def degraded(notification: Notification) -> Suppressed:
    """Return the end of what is not sent but found in the feed, with the id of its copy there."""
    if _names_feed(notification):
        return Suppressed(DEGRADED)
    return Suppressed(f"{DEGRADED} to {format_id(copy_id(notification.id))}")


async def put_into_feed(ground: Ground, notifications: Collection[Notification], now: Instant) -> None:
    """Accept a copy for the feed of each of *notifications* that does not name it; what is there is not again."""
    made = [NewNotification(_copy(each, now)) for each in notifications if not _names_feed(each)]
    for answer in await ground.work.accept(made) if made else ():
        if isinstance(answer, Unwritten):
            raise answer.error


def copy_id(of: NotificationId) -> NotificationId:
    """Return the id of the copy: of the same millisecond, its random part made of the id that it is a copy of."""
    (made,), _ = next_ids(created_at(of), 1, hashlib.blake2b(of, digest_size=10, person=b"degraded").digest(), 0)
    return made


def _copy(of: Notification, now: Instant) -> Notification:
    return replace(
        of,
        id=copy_id(of.id),
        caller=DEGRADED_CALLER,
        content=replace(of.content, channels=(ChannelStep(FEED),)),
        lane=lane_of(of.kind, of.urgency),
        created_at=now,
        scheduled_at=None,
        device_ids=(),
    )


def _names_feed(notification: Notification) -> bool:
    return place_of(notification.content.channels, FEED, FEED) is not None
