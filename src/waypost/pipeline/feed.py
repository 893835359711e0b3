"""Feed: from what a reader does with entries to what is known of their deliveries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.domain.amendment import Confirm
from waypost.domain.ids import AppId
from waypost.domain.status import DeliveryStatus
from waypost.ports.clock import Clock
from waypost.ports.feed import Entry, Feed, FeedCounts, Mark, MarkedEntry, Marking, Saying
from waypost.ports.live import Changed, Live
from waypost.ports.work import Work

_CONFIRMS: Final = {
    Mark.SEEN: DeliveryStatus.DELIVERED,
    Mark.READ: DeliveryStatus.OPENED,
    Mark.ARCHIVED: DeliveryStatus.OPENED,
}
"""What a mark says of the delivery to the feed."""
_TAKES_AWAY: Final = frozenset({Mark.READ, Mark.ARCHIVED, Mark.DELETED})
"""The marks after which a notification is not to be shown on other devices any more."""
AT_ONCE: Final = 1_000


class Reading(Struct, frozen=True):
    """The entries that a marking changed, and how many are new afterwards."""

    changed: Sequence[MarkedEntry]
    counts: FeedCounts


async def mark(
    feed: Feed, work: Work, clock: Clock, live: Live, telling: Collection[AppId], marking: Marking
) -> Reading:
    """Confirm the deliveries of entries as seen or opened, mark them, and tell the user's other devices.

    Those that are connected hear it at once; of the apps *telling* the others do, too, by a push.

    What is marked is known to be confirmed: a caller that has to repeat this, since it failed halfway, repeats both.
    """
    status = _CONFIRMS.get(marking.mark)
    if status is not None:
        orders = [
            Confirm(marking.app, each.notification_id, each.n, status, marking.at)
            for each in await feed.meant(marking)
            if each.n is not None
        ]
        for start in range(0, len(orders), AT_ONCE):
            await work.amend(orders[start : start + AT_ONCE], clock.now())
    is_told = marking.mark in _TAKES_AWAY and marking.app in telling
    changed = await feed.mark(replace(marking, is_told=is_told))
    (counts,) = await feed.counts([(marking.app, marking.user_id)])
    if changed:
        ids = tuple([each.notification_id for each in changed])
        await live.changed(Changed(marking.app, marking.user_id, marking.mark, ids))
    return Reading(changed, counts)


async def worded(entries: Sequence[Entry], say: Saying) -> Sequence[Entry]:
    """Return *entries* with the words that their reader reads; those without a template are as they are stored."""
    if all(each.record.notification.content.template is None for each in entries):
        return entries
    said = await say([each.record.notification for each in entries])
    return [
        replace(each, record=replace(each.record, notification=notification))
        for each, notification in zip(entries, said, strict=True)
    ]
