"""Dismissing: what was read on one device goes from the others, by a silent push that also brings the badge."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from waypost.channels.inapp.settings import CHANNEL
from waypost.domain.amendment import Collapse, Supersede, Withdraw
from waypost.domain.channel import PUSH, Channel
from waypost.domain.content import Content, Kind, Urgency
from waypost.domain.device import CONTACTS, Device
from waypost.domain.ids import CallerId, NotificationId, format_id, next_ids
from waypost.domain.notification import Lane, Notification
from waypost.domain.time import DAY_MS, Instant, later
from waypost.features.feed.inapp import dismissing
from waypost.features.parts import Ground
from waypost.ports.work import NewNotification
from waypost.runtime.ticker import UNTIL_WRITTEN, Rest
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
PAGES_AT_ONCE: Final = 20
"""The most pages of users that are told in a row: 2,000 users a second."""
ORDERS_AT_ONCE: Final = 1_000
_SHOWN: Final = frozenset({PUSH, CHANNEL})
"""The families of what is shown in an app or by a browser."""
WHY: Final = "read on another device"


async def tell_reads(ground: Ground) -> Rest | None:
    """Tell the devices of users what was read elsewhere, and take back what of it was not sent yet; may be repeated."""
    if not dismissing(ground.config):
        return UNTIL_WRITTEN
    for _ in range(PAGES_AT_ONCE):
        page = await ground.store.notification_reads.pending(USERS_AT_ONCE)
        if page:
            await _tell(ground, page)
        if len(page) < USERS_AT_ONCE:
            return UNTIL_WRITTEN
    return None


async def _tell(ground: Ground, page: Sequence[UserReads]) -> None:
    now = ground.clock.now()
    orders = [Withdraw(told.app, each.id, WHY) for told in page for each in told.unsent if _is_only_shown(ground, each)]
    for start in range(0, len(orders), ORDERS_AT_ONCE):
        await ground.work.amend(orders[start : start + ORDERS_AT_ONCE], now)
    devices = await ground.devices.for_users([(told.app, told.user_id) for told in page])
    made = [_notification(told, _others(told, of_user), now) for told, of_user in zip(page, devices, strict=True)]
    if going := [each for each in made if each is not None]:
        await ground.work.accept([NewNotification(each) for each in going])
        await ground.work.amend(
            [Supersede(each.app, Collapse(each.user_id, COLLAPSE_KEY), each.id) for each in going], now
        )
    await ground.store.notification_reads.told([each for told in page for each in told.reads])


def _others(told: UserReads, devices: Sequence[Device]) -> list[Device]:
    """List the devices to tell: all but the one where all of it was read."""
    return [each for each in devices if each.platform not in CONTACTS and each.device_id != _reader(told)]


def _is_only_shown(ground: Ground, notification: Notification) -> bool:
    """Tell whether it goes to apps and browsers alone: an e-mail is more than a copy of what was read."""
    named = (step.to for step in notification.content.channels)
    return all(ground.families.get(Channel(name), name) in _SHOWN for name in named)


def _reader(told: UserReads) -> str | None:
    """Name the device where all of it was read; None where there are several, or nobody said."""
    where = {each.device_id for each in told.reads}
    return where.pop() if len(where) == 1 else None


def _notification(told: UserReads, others: Sequence[Device], now: Instant) -> Notification | None:
    """Make the notification for *others*, whose badge is counted when it is sent; None where nobody is to be told."""
    if not others or not told.recent:
        return None
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
