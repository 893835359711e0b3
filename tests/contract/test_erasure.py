"""The contract of Erasures, and the stage that carries an order out, on every engine."""

from __future__ import annotations

import os

import msgspec
import pytest

from tests.contract import bulk_bench
from tests.contract.bench import APP, OTHER_APP, Bench, again, marking, notification, sent
from tests.contract.erasure_features import MARKER, PUTS
from tests.contract.sql import SqlUnderTest
from tests.shows import shows
from waypost.bootstrap.features import FEATURES, parts_of
from waypost.domain.bulk import JobOrder, Recipient
from waypost.domain.content import Content
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, CallerId, DeviceId, UserId, next_ids
from waypost.domain.notification import Notification
from waypost.domain.status import NotificationStatus
from waypost.domain.time import MINUTE_MS
from waypost.pipeline.erase import Erased, erase
from waypost.ports.erasure import ERASED_DEVICE, Erasure
from waypost.ports.feed import Mark
from waypost.ports.views import HistoryQuery
from waypost.stores.sql import checkpoint

pytestmark = pytest.mark.asyncio
HER = UserId(f"{MARKER}-user")
TOMBSTONE = UserId("erased-0123")


def told(bench: Bench, user: UserId = HER, app: AppId = APP) -> Notification:
    """Its id says the store's time (those of the other tests never go back, whatever their clocks)."""
    made = notification(bench.now, user=user, app=app, body=f"{MARKER} body")
    (own,), _ = next_ids(bench.now, 1, os.urandom(10), 0)
    caller = CallerId(f"login:{user}")  # with a token of their own
    made = msgspec.structs.replace(made, content=msgspec.structs.replace(made.content, tags=(f"{MARKER}-tag",)))
    return msgspec.structs.replace(made, id=own, caller=caller, device_ids=(DeviceId(f"{MARKER}-device"),))


async def asked(bench: Bench, user: UserId = HER) -> Erasure:
    order = Erasure(told(bench).id, APP, user, TOMBSTONE, bench.now)
    return await bench.store.erasures_of(bench.worker).ask(order)


async def passed(bench: Bench, order: Erasure, *, deletes: bool = False) -> Erased:
    erasures, strikes = bench.store.erasures_of(bench.worker), bench.store.strikes_of(bench.worker)
    return await erase(erasures, bench.store.devices, bench.worker, order, bench.now, strikes, deletes=deletes)


async def carried_out(bench: Bench, order: Erasure, *, deletes: bool = False) -> None:
    """Pass over it until it is done."""
    for _ in range(10):
        if (await passed(bench, order, deletes=deletes)).finished:
            return
        bench.clock.advance(MINUTE_MS)
    raise AssertionError("it does not come to an end")


async def registered(bench: Bench, user: UserId, device: str) -> None:
    said = Registration(APP, user, DeviceId(device), Platform("ios"), f"{MARKER}-token-of-{device}")
    await bench.store.devices.upsert(said, bench.now, 0)


@shows("S3-26")
async def test_what_is_final_stays_without_the_person_and_adds_up(bench: Bench) -> None:
    """Another's notification, and one of the same name in another app, are as they were."""
    done, letter, others = told(bench), told(bench), told(bench, UserId("bob"))
    foreign = told(bench, app=OTHER_APP)
    for made in (done, letter, others, foreign):
        await bench.accept(made)
        lease, item = await bench.take_one()
        assert await bench.settle_first(lease, item, 1, sent(0, bench.now, provider_id=f"{MARKER}-id")) == []
    before = dict(await bench.store.views.balance())
    await carried_out(bench, await asked(bench))
    assert dict(await bench.store.views.balance()) == before
    detail = await bench.detail(done)
    kept = detail.record.notification
    assert (kept.user_id, kept.content, kept.device_ids) == (TOMBSTONE, Content(), ())
    assert kept.caller == f"login:{TOMBSTONE}"
    (receipt,) = detail.receipts
    assert (receipt.device_id, receipt.status, receipt.provider_id) == (ERASED_DEVICE, "sent", None)
    assert receipt.sent_at is not None
    assert await bench.store.views.history(HistoryQuery(APP, HER)) == []
    for untouched in (others, foreign):
        assert (await bench.detail(untouched)).record.notification.content == untouched.content


@shows("S3-26")
async def test_where_it_deletes_nothing_is_left_of_devices_notifications_and_receipts(bench: Bench) -> None:
    """Where ``retention.erased`` is ``delete`` (requirement S3-26): another's stay."""
    await registered(bench, HER, "device")
    done, waiting, others = told(bench), told(bench), told(bench, UserId("bob"))
    for made in (done, others):
        await bench.accept(made)
        lease, item = await bench.take_one()
        assert await bench.settle_first(lease, item, 1, sent(0, bench.now, provider_id=f"{MARKER}-id")) == []
    await bench.accept(waiting)
    await bench.store.feed.mark(marking(done, Mark.READ, bench.now))
    await carried_out(bench, await asked(bench), deletes=True)
    for gone in (done, waiting):
        assert await bench.store.views.detail(APP, gone.id) is None
    assert (await bench.detail(others)).record.notification.content == others.content
    assert await bench.store.devices.of_user(APP, HER, inactive=True) == []
    assert {status: n for status, n in (await bench.store.views.balance()).items() if n} == {"sent": 1}
    if isinstance(bench.store, SqlUnderTest):
        left = {name for name, value in await bench.store.cells() if value in (done.id, waiting.id)}
        assert left <= {"journal"}


async def test_what_is_open_is_withdrawn_first_and_what_is_leased_is_waited_for(bench: Bench) -> None:
    leased = told(bench)
    await bench.accept(leased)
    lease, item = await bench.take_one()
    waiting = told(bench)
    await bench.accept(waiting)
    order = await asked(bench)
    bench.clock.advance(MINUTE_MS // 2)
    assert not (await passed(bench, order)).finished
    assert (await bench.detail(waiting)).record.status is NotificationStatus.CANCELLED
    assert (await bench.detail(leased)).record.notification.user_id == HER
    assert await bench.settle_first(lease, item, 1, sent(0, bench.now)) == []
    await carried_out(bench, order)
    for made in (leased, waiting):
        assert (await bench.detail(made)).record.notification.user_id == TOMBSTONE
    assert list(await bench.leasable()) == []


async def test_a_waiting_retry_is_not_made(bench: Bench) -> None:
    made = told(bench)
    await bench.accept(made)
    lease, item = await bench.take_one()
    assert await bench.settle_first(lease, item, 1, again(0, bench.now)) == []
    await carried_out(bench, await asked(bench))
    assert (await bench.detail(made)).record.notification.user_id == TOMBSTONE
    assert list(await bench.leasable()) == []


async def test_an_order_stands_until_it_is_carried_out_and_what_comes_later_stays(bench: Bench) -> None:
    """Asked for twice it is one; the user who is back is somebody new."""
    erasures = bench.store.erasures_of(bench.worker)
    await registered(bench, HER, "old")
    await bench.accept(told(bench))
    assert await erasures.of(APP, HER) is None
    order = await asked(bench)
    bench.clock.advance(1)
    assert await asked(bench) == await erasures.of(APP, HER) == order
    assert await erasures.of(OTHER_APP, HER) is None
    assert list(await erasures.standing(10)) == [order]
    others = await asked(bench, UserId("bob"))
    assert list(await erasures.standing(1)) == [order]
    assert list(await erasures.standing(1, after=order.id)) == [others]
    assert list(await erasures.standing(1, after=others.id)) == []
    await erasures.finish(others, bench.now)
    assert (await passed(bench, order)) == Erased(1, finished=False)
    await registered(bench, HER, "new")
    later_on = told(bench)
    await bench.accept(later_on)
    await carried_out(bench, order)
    assert list(await erasures.standing(10)) == []
    assert await erasures.of(APP, HER) is None
    assert [device.device_id for device in await bench.store.devices.of_user(APP, HER, inactive=True)] == ["new"]
    assert (await bench.detail(later_on)).record.notification == later_on
    assert (await asked(bench)).id != order.id


async def test_a_bulk_job_forgets_whom_it_lists_and_tells_all_the_others(bench: Bench) -> None:
    """Two pieces are cut at the user, one of them is leased; the rest of the list is told once, and no table says
    where it was cut."""
    users = ["ann", HER, "yan", "zoe"]
    for user in users:
        await bulk_bench.registered(bench, user, device=f"{MARKER}-of" if user == HER else "d")
    made = await bulk_bench.created(bench, bulk_bench.job(registry=None))
    listed = [Recipient(UserId(user), {"name": f"{MARKER}-name"} if user == HER else {}) for user in users]
    assert await bench.bulk.add(made.app, made.id, listed)
    await bench.bulk.order(made.app, made.id, JobOrder.START, bench.now)
    await bulk_bench.walked(bench, made, most=2, piece=2)
    order = await asked(bench)
    await passed(bench, order)
    lease = await bulk_bench.leased(bench)
    assert bulk_bench.users_of(lease) == ["ann", "yan", "zoe"]
    await bench.settle(lease, *(bulk_bench.taken(item, bench.now) for item in lease.items))
    await carried_out(bench, order)
    if isinstance(bench.store, SqlUnderTest):
        assert [name for name, value in await bench.store.cells() if holds(value)] == []


@shows("S3-26")
async def test_no_table_knows_the_person_afterwards(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no file: devices in use and not, content, receipts, the journal, and what each feature keeps.

    On SQLite also the free room of the database and its log, byte by byte.
    """
    store = bench.store
    if not isinstance(store, SqlUnderTest):
        pytest.skip("the memory has no tables")
    monkeypatch.setattr(checkpoint, "CUT_EVERY_S", 0.0)
    bench = await bench.crash()  # another worker, which cuts its log each time
    await registered(bench, HER, f"{MARKER}-old")
    await store.devices.deactivate(APP, HER, DeviceId(f"{MARKER}-old"))
    await registered(bench, HER, f"{MARKER}-device")
    made = told(bench)
    await bench.accept(made)
    lease, item = await bench.take_one()
    await bench.settle_first(lease, item, 1, sent(0, bench.now, provider_id=f"{MARKER}-id"))
    named = set().union(*[await put(bench, store, made) for put in PUTS.values() if not isinstance(put, str)])
    assert {name for name, value in await store.cells() if holds(value)} == {
        "notification",
        "content",
        "receipt",
        "device",
        "journal",
        *named,
    }  # fmt: skip - a set of names
    files = store.files()
    assert not files or any(MARKER.encode() in path.read_bytes() for path in files)
    order = await asked(bench)
    await carried_out(bench, order)
    rows = await store.journal.read(0, 10_000)
    await store.journal.drop_before(rows[-1].position + 1, 10_000)
    await bench.accept(notification(bench.now))  # the log is cut by who wrote last
    assert [name for name, value in await store.cells() if holds(value)] == []
    assert [path.name for path in files if MARKER.encode() in path.read_bytes()] == []


async def test_each_feature_says_how_a_user_comes_into_what_it_keeps() -> None:
    """A feature that does not say cannot be mounted: nobody would know whether it forgets them."""
    assert set(PUTS) == {feature.name for feature in FEATURES}
    with_tables = {feature.name for feature in FEATURES if parts_of(feature).tables or parts_of(feature).erases}
    assert [name for name in with_tables if isinstance(PUTS[name], str)] == [], "what has tables shows that it forgets"


def raw(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def holds(value: object) -> bool:
    return MARKER.encode() in raw(value)
