"""Marks of a feed: what they say of deliveries is said though the first try failed halfway."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.contract.bench import APP, notification
from tests.contract.clock import StoppedClock
from tests.memory.feed import MemoryFeed
from tests.memory.store import MemoryStore
from tests.memory.work import MemoryWork
from waypost.domain.amendment import Amended, Amendment, Confirm
from waypost.domain.errors import ErrorCode, Unavailable
from waypost.domain.status import DeliveryStatus
from waypost.domain.time import Instant
from waypost.pipeline.feed import mark
from waypost.ports.feed import Mark, Marking, NewEntry
from waypost.ports.live import Changed
from waypost.ports.work import NewNotification


class Work(MemoryWork):
    """Work that is away the first time that a delivery is confirmed."""

    is_away = True
    confirmed: DeliveryStatus | None = None

    async def amend(self, amendments: Sequence[Amendment], now: Instant) -> list[Amended]:
        """Keep what is confirmed."""
        if self.is_away:
            self.is_away = False
            raise Unavailable("away", ErrorCode.STORAGE_AWAY)
        for each in amendments:
            assert isinstance(each, Confirm)
            self.confirmed = each.status
        return []


class Unheard:
    """Live connections, of which there are none."""

    async def brought(self, entries: Sequence[NewEntry]) -> None:
        """See Live."""

    async def changed(self, change: Changed) -> None:
        """See Live."""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("mark_made", "status"),
    [
        (Mark.SEEN, DeliveryStatus.DELIVERED),
        (Mark.READ, DeliveryStatus.OPENED),
        (Mark.ARCHIVED, DeliveryStatus.OPENED),
    ],
)
async def test_a_mark_that_failed_halfway_confirms_when_it_is_made_again(
    mark_made: Mark, status: DeliveryStatus
) -> None:
    clock, store = StoppedClock(), MemoryStore()
    feed, work = MemoryFeed(store, clock), Work(store, clock)
    made = notification(clock.now())
    await work.accept([NewNotification(made)])
    await feed.add([NewEntry(APP, made.user_id, made.id, 0, 1, clock.now())])
    marking = Marking(APP, made.user_id, mark_made, clock.now(), (made.id,))
    with pytest.raises(Unavailable):
        await mark(feed, work, clock, Unheard(), (), marking)
    assert [each.n for each in (await mark(feed, work, clock, Unheard(), (), marking)).changed] == [0]
    assert work.confirmed is status
