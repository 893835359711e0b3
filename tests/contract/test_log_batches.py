"""A batch of which the log or the store takes only a part says so of each item."""

from __future__ import annotations

import pytest

from tests.contract.bench import APP, notification
from tests.contract.log import LogUnderTest
from waypost.domain.errors import Unavailable
from waypost.domain.time import HOUR_MS, later
from waypost.ports.work import Accepted, NewNotification, Unwritten

pytestmark = [pytest.mark.asyncio, pytest.mark.engines]

TOO_LARGE = "x" * 2_000_000
"""For a message of the log."""


async def test_what_the_log_refuses_is_unwritten_and_the_rest_of_the_batch_accepted(log_store: LogUnderTest) -> None:
    worker = (await log_store.open_workers(1))[0]
    now = log_store.clock.now()
    small, scheduled = notification(now), notification(now, scheduled_at=later(now, HOUR_MS))
    large = notification(now, body=TOO_LARGE)
    answers = await worker.accept([NewNotification(each) for each in (scheduled, large, small)])
    assert answers[::2] == [Accepted(scheduled.id), Accepted(small.id)]
    assert isinstance(answers[1], Unwritten)
    known = await log_store.views.statuses(APP, [scheduled.id, small.id, large.id])
    assert set(known) == {scheduled.id, small.id}


async def test_where_nothing_is_written_the_batch_is_refused_whole(log_store: LogUnderTest) -> None:
    worker = (await log_store.open_workers(1))[0]
    with pytest.raises(Unavailable):
        await worker.accept([NewNotification(notification(log_store.clock.now(), body=TOO_LARGE)) for _ in range(2)])


async def test_a_scheduled_part_that_is_written_counts_where_all_that_is_the_logs_is_not(
    log_store: LogUnderTest,
) -> None:
    """And the other way round: nothing that will be sent is answered as if nothing had been accepted."""
    worker = (await log_store.open_workers(1))[0]
    now = log_store.clock.now()
    scheduled, large = notification(now, scheduled_at=later(now, HOUR_MS)), notification(now, body=TOO_LARGE)
    answers = await worker.accept([NewNotification(scheduled), NewNotification(large)])
    assert answers[0] == Accepted(scheduled.id)
    assert isinstance(answers[1], Unwritten)

    await log_store._workers[id(worker)].database.close()
    soon = notification(now)
    answers = await worker.accept(
        [NewNotification(notification(now, scheduled_at=later(now, HOUR_MS))), NewNotification(soon)]
    )
    assert isinstance(answers[0], Unwritten)
    assert answers[1] == Accepted(soon.id)
    known = await log_store.views.statuses(APP, [scheduled.id, soon.id, large.id])
    assert set(known) == {scheduled.id, soon.id}
