"""Schedules on a store: each time is submitted once, at its local time; what nobody was there for is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.contract.bench import APP, Bench
from tests.contract.scheduling import ground_on, submitted, weekly
from tests.contract.sql import SqlUnderTest
from waypost.domain.ids import UserId
from waypost.domain.local_time import choose_zone
from waypost.domain.profile import Profile
from waypost.domain.recurrence import Recurrence
from waypost.domain.schedule import Claimed, Schedule, ScheduleStatus, awaiting, paused
from waypost.domain.time import DAY_MS, HOUR_MS, MINUTE_MS, Instant, isoformat, later
from waypost.features.parts import Ground
from waypost.features.schedules.sending import IN_DOUBT, send_due
from waypost.stores.sql.transaction import OperationKind, Transaction

pytestmark = pytest.mark.asyncio

FIRST, SECOND = "2027-03-15T08:00:00.000Z", "2027-03-22T08:00:00.000Z"


@pytest_asyncio.fixture
async def bench(ledger_store: SqlUnderTest) -> Bench:
    """A worker on an empty store."""
    (worker,) = await ledger_store.open_workers(1)
    return Bench(ledger_store, worker)


async def found(ground: Ground, name: str = "weekly") -> Schedule:
    """The schedule as it is."""
    schedule = await ground.store.schedules.find(APP, name)
    assert schedule is not None
    return schedule


async def begin(bench: Bench, schedule: Schedule) -> Ground:
    """Add a schedule, on what its duty works with."""
    ground = ground_on(bench)
    assert await ground.store.schedules.add(schedule, bench.now)
    return ground


async def times(bench: Bench, ground: Ground, n: int) -> list[str]:
    """When the next *n* times were submitted: not a millisecond before each is due."""
    before = len(await submitted(bench))
    for _ in range(n):
        due_at = (await found(ground)).due_at
        assert due_at is not None
        bench.clock.advance(due_at - bench.now - 1)
        was = len(await submitted(bench))
        await send_due(ground)
        assert len(await submitted(bench)) == was, "never early"
        bench.clock.advance(1)
        await send_due(ground)
        await send_due(ground)
    return [isoformat(each.created_at) for each in (await submitted(bench))[before:]]


async def test_nine_on_mondays_stays_nine_over_a_clock_change(bench: Bench) -> None:
    ground = await begin(bench, weekly(bench))
    assert await times(bench, ground, 3) == [FIRST, SECOND, "2027-03-29T07:00:00.000Z"]
    after = await found(ground)
    assert (after.sent, after.missed, after.following) == (3, 0, "2027-04-05T09:00")


async def test_a_user_who_moves_is_told_at_nine_over_there_once_a_week(bench: Bench) -> None:
    ground = await begin(bench, weekly(bench))
    profiles, ann = ground.store.profiles, UserId("ann")
    assert await times(bench, ground, 1) == [FIRST]
    await profiles.put(APP, ann, Profile(time_zone="America/New_York"), bench.now)
    assert (await found(ground)).due_at is not None
    bench.clock.advance(7 * DAY_MS)
    await send_due(ground)
    assert len(await submitted(bench)) == 1, "it is four in the morning over there"
    assert await times(bench, ground, 1) == ["2027-03-22T13:00:00.000Z"]
    further_west = choose_zone("Pacific/Honolulu", None)
    again = awaiting(await found(ground), further_west, bench.now)
    assert again.following == "2027-03-29T09:00", "nine o'clock of the same Monday comes once more: it was told already"


async def test_several_times_a_day_are_several_submissions(bench: Bench) -> None:
    rule = Recurrence("2027-03-15T09:00", "FREQ=DAILY;BYHOUR=9,12")
    ground = await begin(bench, weekly(bench, recurrence=rule))
    assert await times(bench, ground, 3) == [FIRST, "2027-03-15T11:00:00.000Z", "2027-03-16T08:00:00.000Z"]


@pytest.mark.parametrize(("late_ms", "is_sent"), [(HOUR_MS, True), (HOUR_MS + 1, False)])
async def test_of_what_was_missed_the_latest_is_made_up_for_within_the_grace(
    bench: Bench, late_ms: int, is_sent: bool
) -> None:
    ground = await begin(bench, weekly(bench))
    due_at = (await found(ground)).due_at
    assert due_at is not None
    bench.clock.advance(due_at - bench.now + 7 * DAY_MS + late_ms)
    await send_due(ground)
    await send_due(ground)
    after = await found(ground)
    assert (len(await submitted(bench)), after.sent, after.missed) == (is_sent, is_sent, 1 if is_sent else 2)
    assert after.following == "2027-03-29T09:00"


async def test_several_holders_of_the_duty_submit_each_time_once(bench: Bench) -> None:
    ground = ground_on(bench)
    names = [f"n{n:03}" for n in range(250)]
    for name in names:
        assert await ground.store.schedules.add(weekly(bench, name, f"{name}-user"), bench.now)
    due_at = (await found(ground, "n000")).due_at
    assert due_at is not None
    bench.clock.advance(due_at - bench.now)
    await asyncio.gather(*(send_due(ground) for _ in range(3)))
    await send_due(ground)
    ends = [await found(ground, name) for name in names]
    assert {(each.sent, each.claimed, each.following) for each in ends} == {(1, None, "2027-03-22T09:00")}
    assert len({each.last.id for each in ends if each.last is not None}) == len(names)
    assert len(await bench.leasable()) == len(names)


async def test_a_claim_that_is_a_day_old_is_not_submitted_again(bench: Bench) -> None:
    made = weekly(bench)
    lost = replace(made, claimed=Claimed("2027-03-15T09:00", bench.now), due_at=bench.now)
    ground = await begin(bench, lost)
    bench.clock.advance(23 * HOUR_MS + 1)
    await send_due(ground)
    after = await found(ground)
    assert after.last is not None
    assert (await submitted(bench), after.last.error, after.following) == ([], IN_DOUBT, "2027-03-22T09:00")


async def test_a_bulk_job_is_made_each_time(bench: Bench) -> None:
    job = b'{"notification": {"title": "News"}, "registry": {}}'
    ground = await begin(bench, weekly(bench, user=None, notification=None, bulk=job))
    assert await times(bench, ground, 2) == []
    jobs = await ground.store.bulk_views.list(APP, None, 10)
    assert [isoformat(each.job.created_at) for each in reversed(jobs)] == [FIRST, SECOND]
    after = await found(ground)
    assert after.last is not None
    assert after.last.id == jobs[0].job.id


async def test_what_is_refused_is_said_and_the_next_time_comes(bench: Bench) -> None:
    ground = await begin(bench, weekly(bench, notification=b'{"user_id": "ann"}'))
    assert await times(bench, ground, 1) == []
    after = await found(ground)
    assert after.last is not None
    assert (after.sent, after.following) == (0, "2027-03-22T09:00")
    assert after.last.error == "title: a visible notification needs a title or a body"


async def test_of_two_who_write_the_second_is_told(bench: Bench) -> None:
    ground = await begin(bench, weekly(bench))
    schedules, made = ground.store.schedules, await found(ground)
    assert not await schedules.add(weekly(bench), bench.now)
    stopped = await schedules.replace(made, paused(made), bench.now)
    assert stopped is not None
    assert await schedules.replace(made, made, bench.now) is None
    assert (await found(ground)) == stopped
    assert [page async for page in schedules.due(later(bench.now, 365 * DAY_MS), 10)] == []
    assert await schedules.remove(APP, "weekly")
    assert not await schedules.remove(APP, "weekly")
    assert await schedules.replace(stopped, made, bench.now) is None


async def test_what_ended_goes_after_a_while(bench: Bench) -> None:
    ground = await begin(bench, weekly(bench))
    ended = replace(weekly(bench, "ended"), status=ScheduleStatus.ENDED, due_at=None)
    assert await ground.store.schedules.add(ended, bench.now)
    assert await ground.store.schedules.drop(bench.now, 10) == 0
    assert await ground.store.schedules.drop(later(bench.now, MINUTE_MS), 10) == 1
    assert [each.name for each in await ground.store.schedules.page(APP, "", 10)] == ["weekly"]


async def test_the_soonest_is_found_first_by_an_index(bench: Bench) -> None:
    ground = await begin(bench, replace(weekly(bench), due_at=Instant(3)))
    for name, at in (("b", 2), ("a", 2), ("c", 1), ("late", 9)):
        await ground.store.schedules.add(replace(weekly(bench, name), due_at=Instant(at)), bench.now)
    pages = [[each.name for each in page] async for page in ground.store.schedules.due(Instant(3), 2)]
    assert pages == [["c", "a"], ["b", "weekly"]]


async def test_a_row_that_only_a_newer_version_can_read_stops_none_beside_it(bench: Bench) -> None:
    ground = await begin(bench, replace(weekly(bench), due_at=Instant(3)))
    newer = msgspec.msgpack.encode({"name": "newer", "status": "dreaming"})

    def write(transaction: Transaction, _: Sequence[None]) -> list[None]:
        transaction.connection.execute("UPDATE schedule SET body = ?", (newer,))
        return [None]

    await ground.store.database.commits.submit(OperationKind("write_newer", write, durable=True), None)
    await ground.store.schedules.add(replace(weekly(bench, "late"), due_at=Instant(4)), bench.now)
    pages = [[each.name for each in page] async for page in ground.store.schedules.due(Instant(9), 1)]
    assert pages == [[], ["late"]]


async def test_what_cannot_be_read_here_waits_and_the_others_go_on(bench: Bench) -> None:
    ground = ground_on(bench)
    newer = weekly(bench, "newer", notification=b'{"user_id": "ann", "title": 7}')
    job = weekly(bench, "job", None, notification=None, bulk=b'{"users": 7}')
    for each in (newer, job, weekly(bench)):
        assert await ground.store.schedules.add(each, bench.now)
    assert newer.due_at is not None
    bench.clock.advance(newer.due_at - bench.now)
    await send_due(ground)
    assert [each.content.title for each in await submitted(bench)] == ["A new week"]
    assert [(await found(ground, name)).sent for name in ("newer", "job", "weekly")] == [0, 0, 1]
