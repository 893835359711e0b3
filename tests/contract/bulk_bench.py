"""The words in which the bulk suites speak: a job on a store, walked, leased and settled."""

from __future__ import annotations

from collections.abc import Mapping

from tests.contract.bench import APP, CALLER, Bench, sent
from tests.contract.clock import START
from waypost.domain.bulk import BulkJob, JobId, JobState, RegistryFilter
from waypost.domain.channel import APNS
from waypost.domain.content import Content
from waypost.domain.delivery import Target
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId
from waypost.domain.notification import Lane
from waypost.domain.status import NotificationStatus
from waypost.domain.time import DAY_MS, HOUR_MS, Instant, later
from waypost.ports.bulk import JobCreated, JobRecord
from waypost.ports.work import Lease, Settled, WorkItem

EVERYBODY = RegistryFilter()


def job(n: int = 1, *, app: AppId = APP, at: Instant = START, registry: RegistryFilter | None = EVERYBODY) -> BulkJob:
    """The *n*-th job, the same in every process."""
    return BulkJob(
        id=JobId(at.to_bytes(6, "big") + b"\x70\x00\x80" + bytes(6) + bytes([n])),
        app=app,
        caller=CALLER,
        content=Content(title="Hello {{name}}" if registry is None else "Hello"),
        created_at=at,
        expires_at=later(at, DAY_MS),
        ttl_ms=DAY_MS,
        registry=registry,
        names=("name",) if registry is None else (),
        defaults={"name": "friend"} if registry is None else {},
    )


async def registered(
    bench: Bench,
    *users: str,
    device: str = "d",
    platform: str = "ios",
    app_version: str | None = None,
    locale: str | None = None,
) -> None:
    """One device for each of *users*."""
    for user in users:
        said = Registration(
            APP,
            UserId(user),
            DeviceId(device),
            Platform(platform),
            token=f"{user}/{device}",
            app_version=app_version,
            locale=locale,
        )
        await bench.store.devices.upsert(said, bench.now, cap=0)


async def created(bench: Bench, made: BulkJob) -> BulkJob:
    """Make a job; as it is stored."""
    answer = await bench.bulk.create(made, None, b"body")
    assert isinstance(answer, JobCreated)
    return answer.record.job


async def walked(bench: Bench, made: BulkJob, *, most: int = 1000, piece: int = 500) -> int:
    """Enqueue to the end; how many recipients."""
    total = 0
    while True:
        step = await bench.bulk.enqueue(made.app, made.id, most, piece)
        total += step.recipients
        if step.walked or not step.moved:
            return total


async def record(bench: Bench, made: BulkJob) -> JobRecord:
    """How the job stands."""
    found = await bench.store.bulk_views.show(made.app, made.id)
    assert found is not None
    return found


async def leased(bench: Bench, n: int = 1000) -> Lease:
    """Release what is due, and lease from the bulk lane."""
    return await bench.take(n, Lane.BULK)


def taken(item: WorkItem, now: Instant) -> Settled:
    """Every target of a leased item was taken by its provider."""
    if item.open_targets is not None:
        return Settled(item.notification, tuple(sent(each.n, now, each.attempt + 1) for each in item.open_targets))
    assert item.devices is not None
    targets = tuple(Target(n, device.device_id, APNS) for n, device in enumerate(item.devices))
    verdict = None if targets else NotificationStatus.NO_TARGETS
    return Settled(item.notification, tuple(sent(each.n, now) for each in targets), targets, verdict)


def users_of(lease: Lease) -> list[str]:
    """Who is leased, by name."""
    return sorted(item.notification.user_id for item in lease.items)


async def ids_of(
    bench: Bench, made: BulkJob, users: Mapping[str, object] | list[str]
) -> dict[str, NotificationId | None]:
    """The ids of recipients' notifications, as the job tells them."""
    found = {}
    for user in users:
        told = await bench.store.bulk_views.recipient(made.app, made.id, UserId(user))
        assert told is not None
        found[user] = told.notification_id
    return found


async def sent_to_all(bench: Bench, made: BulkJob) -> None:
    """Send whatever is left, and let the job finish."""
    for _ in range(10):
        lease = await leased(bench)
        assert await bench.settle(lease, *(taken(item, bench.now) for item in lease.items)) == []
        bench.clock.advance(HOUR_MS)
    await bench.bulk.tidy(bench.now, 100)
    assert (await record(bench, made)).state is JobState.FINISHED
