"""A bulk job with a local time: each recipient is sent to at that time of their own clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.contract.bench import APP, Bench
from tests.contract.bulk_bench import created, job, leased, registered, users_of, walked
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.domain.bulk import BulkJob
from waypost.domain.channel import APNS
from waypost.domain.credential import CredentialId
from waypost.domain.device import Platform
from waypost.domain.ids import NotificationId, UserId
from waypost.domain.profile import Profile
from waypost.domain.recipient import Recipient
from waypost.domain.rollup import MONTH_MS
from waypost.domain.routing import RoutingTable
from waypost.domain.rules import RULES
from waypost.domain.segment import Filter
from waypost.domain.time import HOUR_MS, isoformat, later
from waypost.pipeline.route import plan
from waypost.ports.work import Lease, Settled
from waypost.stores.sql.transaction import OperationKind, Transaction

pytestmark = pytest.mark.asyncio

ZONES = {"ann": "Europe/Zurich", "bob": "America/New_York", "cid": None}
TABLE = RoutingTable({Platform("ios"): APNS}, {APP: {APNS: [CredentialId(APP, APNS)]}}, RULES)


async def routed(bench: Bench, lease: Lease) -> int:
    """Settle what routing decides of all that is leased without sending; how many are to be sent now."""
    owned = await bench.store.devices.for_users([(APP, item.notification.user_id) for item in lease.items])
    plans = [plan(item, Recipient(each), TABLE, bench.now) for item, each in zip(lease.items, owned, strict=True)]
    waiting = [each for each in plans if not each.deliveries]
    settled = [Settled(each.item.notification, each.changes, each.targets, each.verdict) for each in waiting]
    await bench.settle(lease, *settled)
    return len(plans) - len(waiting)


async def begun(bench: Bench, ledger: SqlUnderTest, send_at: str, **to: Any) -> BulkJob:
    """A job to three users, walked."""
    await registered(bench, *ZONES)
    for user, zone in ZONES.items():
        if zone is not None:
            await ledger._opened.profiles.put(APP, UserId(user), Profile(time_zone=zone), bench.now)
    made = await created(bench, replace(job(), send_at=send_at, zone="Asia/Tokyo", ttl_ms=HOUR_MS, **to))
    assert await walked(bench, made) == 3
    return made


@shows("S3-109")
async def test_each_recipient_is_sent_to_at_their_own_nine(ledger_store: SqlUnderTest) -> None:
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    await begun(bench, ledger_store, "2027-03-14T09:00")  # the night when New York puts its clocks forward
    lease = await leased(bench)
    times = {item.notification.user_id: item.notification.scheduled_at for item in lease.items}
    assert {user: None if at is None else isoformat(at) for user, at in times.items()} == {
        "cid": "2027-03-14T00:00:00.000Z",
        "ann": "2027-03-14T08:00:00.000Z",
        "bob": "2027-03-14T13:00:00.000Z",
    }
    assert await routed(bench, lease) == 0
    for user in ("cid", "ann", "bob"):
        at = times[UserId(user)]
        assert at is not None
        bench.clock.advance(at - bench.now - 1)
        assert users_of(await leased(bench)) == []
        bench.clock.advance(1)
        lease = await leased(bench)
        assert users_of(lease) == [user]
        assert await routed(bench, lease) == 1
        assert lease.items[0].notification.expires_at == later(at, HOUR_MS)


_HOURS = "INSERT INTO user_hour (app, user_id, month, hour, sent, opened) VALUES (?, ?, ?, ?, 10, ?)"


async def reads(ledger: SqlUnderTest, hours: dict[str, int], opened: int = 9) -> None:
    """Let each user, or all of the app under "", have read so many of ten at an hour in UTC."""

    def write(transaction: Transaction, arguments: Sequence[None]) -> list[None]:
        month = transaction.now // MONTH_MS
        transaction.connection.executemany(_HOURS, [(APP, user, month, hour, opened) for user, hour in hours.items()])
        return [None] * len(arguments)

    await ledger._opened.database.commits.submit(OperationKind("reads", write, durable=True), None)


@shows("S3-120")
async def test_each_recipient_is_sent_to_at_their_best_hour_in_the_window(ledger_store: SqlUnderTest) -> None:
    """It is 08:00 UTC. Bob reads at noon in New York; all of the app read at six, which is three in Tokyo."""
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    await reads(ledger_store, {"bob": 17, "": 6})
    await begun(bench, ledger_store, "best 09:00-21:00")
    lease = await leased(bench)
    times = {item.notification.user_id: item.notification.scheduled_at for item in lease.items}
    assert {user: None if at is None else isoformat(at) for user, at in times.items()} == {
        "ann": "2027-01-15T08:00:00.000Z",  # at once: nobody is known to read in her day, and it has begun
        "bob": "2027-01-15T17:00:00.000Z",
        "cid": "2027-01-16T06:00:00.000Z",
    }
    assert await routed(bench, lease) == 1


async def test_of_a_segment_too_little_read_by_each_is_enough_of_all(ledger_store: SqlUnderTest) -> None:
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    await reads(ledger_store, {"ann": 12, "bob": 12, "cid": 12}, opened=3)
    await reads(ledger_store, {"": 15})
    await ledger_store._opened.topics.put(APP, "news", "", is_open=False, at=bench.now)
    users = [UserId(user) for user in ZONES]
    await ledger_store._opened.topics.change(APP, "news", users, [], bench.now)
    await begun(bench, ledger_store, "best", registry=None, segment=msgspec.convert({"topic": "news"}, Filter))
    times = {item.notification.scheduled_at for item in (await leased(bench)).items}
    assert [isoformat(at) for at in times if at is not None] == ["2027-01-15T12:00:00.000Z"]


async def test_a_time_that_is_past_for_a_recipient_is_now(ledger_store: SqlUnderTest) -> None:
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    made = await begun(bench, ledger_store, "2027-01-15T09:00")  # it is 08:00 UTC: nine in Zurich, later in Tokyo
    told = await ledger_store._opened.bulk_views.recipient(APP, made.id, UserId("bob"))
    assert told is not None
    seen = await bench.store.views.detail(APP, NotificationId(told.notification_id or b""))
    assert seen is not None
    assert isoformat(seen.record.notification.scheduled_at or bench.now) == "2027-01-15T14:00:00.000Z"
    lease = await leased(bench)
    assert await routed(bench, lease) == 2
    assert [item.notification.user_id for item in lease.items if item.notification.scheduled_at == bench.now] == [
        "ann",
        "cid",
    ]
