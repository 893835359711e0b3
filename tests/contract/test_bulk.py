"""Bulk jobs: each recipient once, in exactly one state, from the walk to the last receipt."""

from __future__ import annotations

import pytest

from tests.contract.bench import APP, OTHER_APP, RETRY_MS, Bench, again, sent
from tests.contract.bulk_bench import (
    created,
    ids_of,
    job,
    leased,
    record,
    registered,
    sent_to_all,
    taken,
    users_of,
    walked,
)
from tests.contract.stores import StoreUnderTest
from tests.shows import shows
from waypost.domain.bulk import FAILURES_LIMIT, BulkJob, JobOrder, JobState, Recipient, RegistryFilter
from waypost.domain.channel import APNS
from waypost.domain.delivery import Target
from waypost.domain.device import Platform
from waypost.domain.ids import DeviceId, UserId
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, later
from waypost.pipeline.expand import Failures, Paces, expand
from waypost.ports.bulk import JobConflict, JobCreated
from waypost.ports.work import Replay, Settled

pytestmark = pytest.mark.asyncio

SENT, PENDING = NotificationStatus.SENT, NotificationStatus.PENDING
USERS = [f"u{n:02}" for n in range(12)]


async def _listed(bench: Bench, *recipients: Recipient) -> BulkJob:
    made = await created(bench, job(registry=None))
    assert await bench.bulk.add(APP, made.id, recipients)
    assert await bench.bulk.order(APP, made.id, JobOrder.START, bench.now) is JobState.RUNNING
    return made


@shows("S2-01")
async def test_making_a_job_touches_no_recipient(bench: Bench) -> None:
    """Whatever the audience, there is one job, and nothing to lease until it is walked."""
    await registered(bench, *USERS)
    made = await created(bench, job())
    assert (await record(bench, made)).total == 0
    assert (await leased(bench)).items == ()


async def test_a_walk_enqueues_no_more_than_it_was_told(bench: Bench) -> None:
    await registered(bench, *USERS)
    made = await created(bench, job())
    assert (await bench.bulk.enqueue(APP, made.id, 5, 2)).recipients == 5
    assert await bench.worker.depth(Lane.BULK) == 5
    assert users_of(await leased(bench)) == USERS[:5]


@shows("S2-03")
async def test_every_recipient_is_leased_once_and_sent(bench: Bench) -> None:
    await registered(bench, *USERS)
    made = await created(bench, job())
    assert await walked(bench, made, most=5, piece=2) == len(USERS)
    first, second = await leased(bench, 7), await leased(bench)
    assert (len(first.items), len(second.items)) == (7, 5)
    assert users_of(first) + users_of(second) == USERS
    for lease in (first, second):
        await bench.settle(lease, *(taken(item, bench.now) for item in lease.items))
    assert (await record(bench, made)).counts == {SENT: len(USERS)}
    assert (await leased(bench)).items == ()
    assert await bench.bulk.tidy(bench.now, 100) == []
    assert (await record(bench, made)).state is JobState.FINISHED


async def test_the_id_is_told_before_the_row_exists_and_stays(bench: Bench) -> None:
    await registered(bench, *USERS)
    made = await created(bench, job())
    await walked(bench, made, piece=5)
    before = await ids_of(bench, made, USERS)
    for user, notification_id in before.items():
        assert notification_id is not None
        detail = await bench.store.views.detail(APP, notification_id)
        assert detail is not None
        assert (detail.record.status, detail.record.notification.user_id) == (PENDING, user)
        assert await bench.store.views.detail(OTHER_APP, notification_id) is None
    await sent_to_all(bench, made)
    assert await ids_of(bench, made, USERS) == before


async def test_a_list_tells_each_user_once_with_the_last_variables(bench: Bench) -> None:
    await registered(bench, "ann", "bob")
    ann, bob, nobody = UserId("ann"), UserId("bob"), UserId("nobody")
    made = await _listed(
        bench, Recipient(ann, {"name": "A"}), Recipient(bob), Recipient(nobody), Recipient(ann, {"name": "Ann"})
    )
    assert (await record(bench, made)).uploaded == 3
    assert await walked(bench, made) == 3
    lease = await leased(bench)
    titles = {item.notification.user_id: item.notification.content.title for item in lease.items}
    assert titles == {ann: "Hello Ann", bob: "Hello friend", nobody: "Hello friend"}
    await bench.settle(lease, *(taken(item, bench.now) for item in lease.items))
    assert (await record(bench, made)).counts == {SENT: 2, NotificationStatus.NO_TARGETS: 1}
    told = await bench.store.bulk_views.recipient(APP, made.id, ann)
    assert told is not None and told.notification_id is not None
    detail = await bench.store.views.detail(APP, told.notification_id)
    assert detail is not None and detail.record.notification.content.title == "Hello Ann"


async def test_a_list_is_closed_once_the_job_runs(bench: Bench) -> None:
    made = await _listed(bench, Recipient(UserId("ann")))
    assert not await bench.bulk.add(APP, made.id, [Recipient(UserId("bob"))])


@shows("S2-07")
async def test_a_retry_is_an_ordinary_notification(bench: Bench) -> None:
    await registered(bench, "ann")
    made = await created(bench, job())
    await walked(bench, made)
    lease = await leased(bench)
    (item,) = lease.items
    target = (Target(0, DeviceId("d"), APNS),)
    await bench.settle(lease, Settled(item.notification, (again(0, bench.now),), target))
    assert (await record(bench, made)).counts == {NotificationStatus.PROCESSING: 1}
    await bench.bulk.tidy(bench.now, 100)
    assert (await record(bench, made)).state is JobState.RUNNING, "an open retry keeps it from finishing"
    bench.clock.advance(RETRY_MS)
    lease = await leased(bench)
    assert [each.attempt for each in lease.items[0].open_targets or ()] == [1]
    assert lease.items[0].notification.content == made.content
    await bench.settle(lease, taken(lease.items[0], bench.now))
    assert (await record(bench, made)).counts == {SENT: 1}


async def test_a_replay_counts_for_the_job(bench: Bench) -> None:
    made = await _listed(bench, Recipient(UserId("ann"), {"name": "Ann"}))
    await walked(bench, made)
    lease = await leased(bench)
    await bench.settle(lease, taken(lease.items[0], bench.now))
    assert (await record(bench, made)).counts == {NotificationStatus.NO_TARGETS: 1}
    await registered(bench, "ann")
    await bench.accept(Replay(APP, lease.items[0].notification.id, bench.now, later(bench.now, DAY_MS)))
    lease = await leased(bench)
    assert lease.items[0].notification.content.title == "Hello Ann"
    target = (Target(0, DeviceId("d"), APNS),)
    await bench.settle(lease, Settled(lease.items[0].notification, (sent(0, bench.now),), target))
    assert (await record(bench, made)).counts == {SENT: 1}


@shows("S2-04")
async def test_opted_out_users_are_left_out_at_the_walk_and_at_the_lease(bench: Bench) -> None:
    await registered(bench, *USERS)
    await bench.store.opt_outs.put(APP, UserId("u03"), bench.now)
    await bench.store.opt_outs.put(OTHER_APP, UserId("u04"), bench.now)
    made = await created(bench, job())
    assert await walked(bench, made, piece=4) == len(USERS) - 1
    assert (await record(bench, made)).left_out == 1
    await bench.store.opt_outs.put(APP, UserId("u07"), bench.now)
    lease = await leased(bench)
    assert users_of(lease) == [user for user in USERS if user not in ("u03", "u07")]
    await bench.settle(lease, *(taken(item, bench.now) for item in lease.items))
    await bench.bulk.tidy(bench.now, 100)
    ended = await record(bench, made)
    assert (ended.state, ended.left_out, ended.total, ended.counts) == (JobState.FINISHED, 2, 10, {SENT: 10})
    assert await bench.store.opt_outs.has(APP, UserId("u03"))
    assert await bench.store.opt_outs.remove(APP, UserId("u03"))
    assert not await bench.store.opt_outs.remove(APP, UserId("u03"))


FILTERS = {
    "everybody": (RegistryFilter(), "android german ios old"),
    "a platform": (RegistryFilter(platforms=(Platform("android"),)), "android"),
    "a version": (RegistryFilter(app_versions=("2.0", "3.0")), "ios"),
    "a language": (RegistryFilter(locales=("de",)), "german"),
    "a region": (RegistryFilter(locales=("de-CH",)), "german"),
    "another language": (RegistryFilter(locales=("d", "fr")), ""),
    "two at once": (RegistryFilter(platforms=(Platform("ios"),), locales=("de",)), "german"),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_a_filter_finds_whose_device_matches(name: str, bench: Bench) -> None:
    registry, expected = FILTERS[name]
    await registered(bench, "old")
    await registered(bench, "ios", app_version="3.0")
    await registered(bench, "german", locale="de-CH")
    await registered(bench, "android", platform="android")
    made = await created(bench, job(registry=registry))
    assert await walked(bench, made) == len(expected.split())
    assert users_of(await leased(bench)) == expected.split()


async def test_only_the_devices_that_match_are_told(bench: Bench) -> None:
    await registered(bench, "ann")
    await registered(bench, "ann", device="tablet", platform="android")
    made = await created(bench, job(registry=RegistryFilter(platforms=(Platform("android"),))))
    await walked(bench, made)
    (item,) = (await leased(bench)).items
    assert [device.device_id for device in item.devices or ()] == ["tablet"]


async def test_those_seen_before_are_not_told(bench: Bench) -> None:
    await registered(bench, "old")
    bench.clock.advance(DAY_MS)
    await registered(bench, "new")
    made = await created(bench, job(at=bench.now, registry=RegistryFilter(seen_after=bench.now)))
    await walked(bench, made)
    assert users_of(await leased(bench)) == ["new"]


async def test_a_key_makes_one_job(bench: Bench) -> None:
    first = await bench.bulk.create(job(1), b"k" * 16, b"one")
    assert isinstance(first, JobCreated) and first.new
    again_ = await bench.bulk.create(job(2), b"k" * 16, b"one")
    assert isinstance(again_, JobCreated)
    assert (again_.new, again_.record.job.id) == (False, first.record.job.id)
    assert await bench.bulk.create(job(3), b"k" * 16, b"two") == JobConflict(first.record.job.id)


async def test_jobs_of_one_millisecond_have_ids_apart(bench: Bench) -> None:
    """The ids of their recipients lead back to the job by its millisecond."""
    await registered(bench, "ann")
    one, two = await created(bench, job(1)), await created(bench, job(2))
    assert (two.created_at, two.id > one.id) == (one.created_at + 1, True)
    for made in (one, two):
        await walked(bench, made)
    ids = [(await ids_of(bench, made, ["ann"]))["ann"] for made in (one, two)]
    assert ids[0] != ids[1]
    assert [each.job.id for each in await bench.store.bulk_views.list(APP, None, 10)] == [two.id, one.id]
    assert [each.job.id for each in await bench.store.bulk_views.list(APP, two.id, 10)] == [one.id]


async def test_what_is_given_back_is_leased_again(bench: Bench) -> None:
    await registered(bench, *USERS)
    made = await created(bench, job())
    await walked(bench, made)
    lease = await leased(bench)
    await bench.settle(lease, *(Settled(item.notification, given_back=True) for item in lease.items))
    assert users_of(await leased(bench)) == USERS


@shows("S1-119", "S1-120", "S1-144")
async def test_workers_share_a_job_and_take_over_from_a_dead_one(store: StoreUnderTest) -> None:
    workers = [Bench(store, worker) for worker in await store.open_workers(2)]
    await registered(workers[0], *USERS)
    made = await created(workers[0], job())
    await walked(workers[0], made, piece=1)
    mine, others = await leased(workers[0], 3), await leased(workers[1], 3)
    assert not {*users_of(mine)} & {*users_of(others)}
    await workers[0].settle(mine, *(taken(item, store.clock.now()) for item in mine.items))
    successor = await workers[1].crash()
    lease = await leased(workers[0])
    await workers[0].settle(lease, *(taken(item, store.clock.now()) for item in lease.items))
    await sent_to_all(successor, made)
    assert (await record(successor, made)).counts == {SENT: len(USERS)}


async def test_an_upload_that_never_ends_is_cancelled_after_a_day(bench: Bench) -> None:
    made = await created(bench, job(registry=None))
    bench.clock.advance(DAY_MS + 1)
    await bench.bulk.tidy(bench.now, 100)
    assert (await record(bench, made)).state is JobState.CANCELLED


async def test_a_job_is_forgotten_after_its_notifications(bench: Bench) -> None:
    await registered(bench, "ann")
    made = await created(bench, job())
    await walked(bench, made)
    await sent_to_all(bench, made)
    bench.clock.advance(DAY_MS)
    assert await bench.bulk.drop_before(bench.now) == 0, "a notification of it is still there"
    await bench.store.retention.drop_before(bench.now, 100)
    assert await bench.bulk.drop_before(bench.now) == 1
    assert await bench.store.bulk_views.show(APP, made.id) is None


async def test_a_job_that_a_store_cannot_walk_stops_no_other(bench: Bench) -> None:
    """PostgreSQL can ask for no text with a NUL; where a store can, the job finds nobody. The door takes none."""
    await registered(bench, *USERS)
    bad = await created(bench, job(1, registry=RegistryFilter(app_versions=("a\x00",))))
    good = await created(bench, job(2))
    paces, failures = Paces(), Failures()
    for _ in range(FAILURES_LIMIT):
        await expand(bench.bulk, paces, failures, bench.now)
    assert (await record(bench, good)).total == len(USERS)
    stands = await record(bench, bad)
    assert stands.walked or stands.state is JobState.FAILED
    assert stands.total == 0
