"""What becomes of a target when its lease is done with it: an intent that was refused, an outcome that comes late."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.sql.conftest import OpenStore, WallClock
from tests.contract.bench import intent, notification, sent, targets
from waypost.domain.channel import Channel
from waypost.domain.delivery import Target
from waypost.domain.ids import DeviceId
from waypost.domain.notification import Guarantee, Lane
from waypost.domain.progress import Stale
from waypost.domain.time import MINUTE_MS, later
from waypost.ports.work import NewNotification, Settled

pytestmark = pytest.mark.asyncio


async def test_the_target_of_a_stale_intent_is_leased_again(tmp_path: Path, open_at: OpenStore) -> None:
    """The list was stored with another device under the number: the new list's intent is refused."""
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    made = notification(now, guarantee=Guarantee.AT_MOST_ONCE)
    await store.work.accept([NewNotification(made)])
    lease = await store.work.lease(Lane.NORMAL, 1, later(now, MINUTE_MS))
    assert await store.work.settle(lease, [Settled(made, targets=targets(1))]) == []
    other = (Target(0, DeviceId("another"), Channel("apns")),)
    assert await store.work.settle(lease, [Settled(made, (intent(0, now),), other)]) == [Stale(made.id, 0, 1)]
    assert store.work.busy_units() == set()
    assert await store.work.promote_due(later(now, MINUTE_MS), 10) == 1


async def test_what_was_given_back_is_not_sent_again_when_its_outcome_comes(tmp_path: Path, open_at: OpenStore) -> None:
    """The worker had no hope of it any more, and the provider answered all the same."""
    store = await open_at(tmp_path / "waypost.db")
    now = WallClock().now()
    made = notification(now)
    await store.work.accept([NewNotification(made)])
    lease = await store.work.lease(Lane.NORMAL, 1, later(now, MINUTE_MS))
    assert await store.work.settle(lease, [Settled(made, targets=targets(1))]) == []
    assert await store.work.settle(lease, [Settled(made, given_back=True)]) == []
    assert await store.work.settle(lease, [Settled(made, (sent(0, now),))]) == []
    assert (await store.work.lease(Lane.NORMAL, 1, later(now, MINUTE_MS))).items == ()
