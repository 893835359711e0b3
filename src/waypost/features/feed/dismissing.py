"""Dismissing: what was read on one device goes from the others, by a silent push that also brings the badge."""

from __future__ import annotations

import hashlib
from operator import attrgetter
from typing import Final

from waypost.domain.amendment import Collapse, Supersede, Withdraw
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.device import CONTACTS, Device
from waypost.domain.ids import CallerId, NotificationId, format_id, next_ids
from waypost.domain.notification import Lane, Notification
from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.feed.inapp import dismissing
from waypost.features.parts import Ground
from waypost.ports.work import NewNotification
from waypost.stores.sql.notification_reads import UserReads

CALLER: Final = CallerId("waypost:feed")
"""The caller of the pushes that tell of reads: no key has a colon in its name."""
KEY: Final = "waypost"
"""The key in ``data`` of what is for Waypost's own clients."""
COLLAPSE_KEY: Final = "waypost:reads"
TTL_MS: Final = DAY_MS
"""Milliseconds for which it is worth telling; an app that is opened lists the feed anyway."""
EVERY_S: Final = 1.0
"""Seconds within which what a user reads is told together."""
USERS_AT_ONCE: Final = 100
ORDERS_AT_ONCE: Final = 1_000
_SHOWN: Final = frozenset({"push", "apns", "fcm", "webpush", "unifiedpush", "inapp"})
"""The channels of what is shown in an app or by a browser, as steps name them."""
WHY: Final = "read on another device"


async def tell_reads(ground: Ground) -> None:
    """Tell the devices of users what was read elsewhere, and take back what of it was not sent yet; may be repeated."""
    if not dismissing(ground.config):
        return
    for reads in await ground.store.notification_reads.pending(USERS_AT_ONCE):
        await _tell(ground, reads)


async def _tell(ground: Ground, told: UserReads) -> None:
    now = ground.clock.now()
    orders = [Withdraw(told.app, each.id, WHY) for each in told.unsent if _is_only_shown(each)]
    for start in range(0, len(orders), ORDERS_AT_ONCE):
        await ground.work.amend(orders[start : start + ORDERS_AT_ONCE], now)
    (devices,) = await ground.devices.for_users([(told.app, told.user_id)])
    others = [each for each in devices if each.platform not in CONTACTS and each.device_id != _reader(told)]
    if others and told.recent:
        made = _notification(told, others, now)
        await ground.work.accept([NewNotification(made)])
        await ground.work.amend([Supersede(told.app, Collapse(told.user_id, COLLAPSE_KEY), made.id)], now)
    await ground.store.notification_reads.told(told.reads)


def _is_only_shown(notification: Notification) -> bool:
    """Tell whether it goes to apps and browsers alone: an e-mail is more than a copy of what was read."""
    return all(step.to in _SHOWN for step in notification.content.channels)


def _reader(told: UserReads) -> str | None:
    """Name the device where all of it was read; None where there are several, or nobody said."""
    where = {each.device_id for each in told.reads}
    return where.pop() if len(where) == 1 else None


def _notification(told: UserReads, others: list[Device], now: Instant) -> Notification:
    """Make the notification for *others*; its badge is counted when it is sent."""
    data = {KEY: {"reads": [format_id(each) for each in told.recent]}}
    return Notification(
        id=_id_of(told),
        app=told.app,
        caller=CALLER,
        user_id=told.user_id,
        content=Content(data=data, collapse_key=COLLAPSE_KEY),
        created_at=now,
        expires_at=later(now, TTL_MS),
        ttl_ms=TTL_MS,
        lane=Lane.SILENT,
        kind=Kind.SILENT,
        urgency=Urgency.NORMAL,
        device_ids=tuple(each.device_id for each in others) if _reader(told) is not None else (),
    )


def _id_of(told: UserReads) -> NotificationId:
    """Make the id, the same whenever the same reads are told."""
    said = b"".join(
        b"%s %d " % (each.notification_id, each.at) for each in sorted(told.reads, key=attrgetter("notification_id"))
    )
    (made,), _ = next_ids(max(each.at for each in told.reads), 1, hashlib.sha256(said).digest()[:10], 0)
    return made
