"""Feed: from what a reader does with entries to what is known of their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from waypost.domain.amendment import Confirm
from waypost.domain.status import DeliveryStatus
from waypost.ports.clock import Clock
from waypost.ports.feed import Feed, Mark, MarkedEntry, Marking
from waypost.ports.work import Work

_CONFIRMS: Final = {Mark.SEEN: DeliveryStatus.DELIVERED, Mark.READ: DeliveryStatus.OPENED}
"""What a mark says of the delivery to the feed."""
AT_ONCE: Final = 1_000


async def mark(feed: Feed, work: Work, clock: Clock, marking: Marking) -> Sequence[MarkedEntry]:
    """Mark entries, confirm their deliveries as seen or opened, and return the entries that this changed."""
    changed = await feed.mark(marking)
    status = _CONFIRMS.get(marking.mark)
    if status is not None:
        orders = [
            Confirm(marking.app, each.notification_id, each.n, status, marking.at)
            for each in changed
            if each.n is not None
        ]
        for start in range(0, len(orders), AT_ONCE):
            await work.amend(orders[start : start + AT_ONCE], clock.now())
    return changed
