"""The tables under the names that other descriptions give them, asked on both engines as a report would."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

import msgspec
import psycopg
import pytest
import pytest_asyncio

from tests.contract.bench import APP, RETRY_MS, Bench, again, marking, notification, sent
from tests.contract.sql import SqlUnderTest
from tests.contract.stores import StoreUnderTest
from tests.shows import shows
from waypost.domain.content import Urgency
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import DeviceId, UserId, created_at, format_id
from waypost.domain.notification import Notification
from waypost.domain.preferences import PreferenceChange, TypeChange
from waypost.domain.profile import ProfileChange
from waypost.domain.quiet_hours import Hours
from waypost.domain.time import DAY_MS, MINUTE_MS, Instant, later
from waypost.ports.feed import Mark
from waypost.stores.sql.connection import connect, database_path
from waypost.stores.sql.named_views import NAMED, DeclaredType, statements

pytestmark = pytest.mark.asyncio

ANN = UserId("ann")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TYPES = (
    DeclaredType(APP, "alert", enabled=True),
    DeclaredType(APP, "it's", enabled=True),
    DeclaredType(APP, "message", enabled=False),
    DeclaredType(APP, "promotion", enabled=False),
    DeclaredType("other", "promotion", enabled=True),
)
Row = dict[str, Any]
Report = Callable[[str], list[Row]]


@pytest.fixture
def report(ledger_store: StoreUnderTest) -> Iterator[Report]:
    """Asks for rows, each by the names of its columns; every view is there, made twice, and dropped afterwards."""
    assert isinstance(ledger_store, SqlUnderTest)
    url = ledger_store.url
    is_postgres = url.startswith("postgres")
    made = [line for words in NAMED for line in statements(words, is_postgres=is_postgres, types=TYPES)]
    dropped = [line for words in NAMED for line in statements(words, is_postgres=is_postgres, drops=True)]

    def ask(query: str) -> list[Row]:
        if not is_postgres:
            query = query.replace("notify.", "notify_").replace("user_api.", "user_api_")
        cursor = database.execute(query)
        names = [each[0] for each in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    with _opened(url) as database:
        for line in (*made, *made):
            database.execute(line)
        yield ask
        for line in dropped:
            database.execute(line)


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    if url.startswith("postgres"):
        with psycopg.connect(url, autocommit=True) as server:
            yield server
    else:
        with closing(connect(database_path(url))) as file:
            yield file


def instant(said: Any) -> Instant:
    """Either engine's time."""
    moment = said if isinstance(said, datetime) else datetime.fromisoformat(said)
    return Instant(round(moment.timestamp() * 1000))


@pytest_asyncio.fixture
async def bench(ledger_store: StoreUnderTest) -> Bench:
    """One worker, and a device of ann's."""
    bench = Bench(ledger_store, (await ledger_store.open_workers(1))[0])
    said = Registration(APP, ANN, DeviceId("d0"), Platform("ios"), "token", app_version="1.2", os_version="18")
    await ledger_store.devices.upsert(said, bench.now, 0)
    return bench


async def tried(bench: Bench) -> Notification:
    """A notification that one device got, and that another is to be tried again for."""
    made = notification(bench.now, user=ANN)
    await bench.accept(made)
    lease, item = await bench.take_one()
    assert await bench.settle_first(lease, item, 2, sent(0, bench.now), again(1, bench.now)) == []
    return made


@shows("S1-52", "S1-58", "S1-91", "S1-95")
async def test_the_tables_of_the_notify_api_by_their_names(bench: Bench, report: Report) -> None:
    made = await tried(bench)
    (shown,) = report("SELECT * FROM notify.notifications")
    assert (str(shown["notification_id"]), shown["caller_id"], shown["user_id"]) == (
        format_id(made.id),
        made.caller,
        ANN,
    )
    assert (shown["notif_type"], shown["urgency"], shown["status"]) == ("visible", "normal", "dispatched")
    assert shown["ttl_seconds"] == made.ttl_ms // 1000
    assert [instant(shown[name]) for name in ("created_at", "expires_at")] == [created_at(made.id), made.expires_at]
    first, second = report("SELECT * FROM notify.delivery_receipts ORDER BY device_id")
    assert (first["delivery_status"], first["attempt_count"], first["next_retry_at"]) == ("sent", 1, None)
    assert [instant(first[name]) for name in ("sent_at", "resolved_at", "created_at")] == [bench.now] * 2 + [
        created_at(made.id)
    ]
    assert (second["delivery_status"], second["gateway_status"], second["user_id"]) == ("pending", "503", ANN)
    assert (first["notif_type"], second["notif_type"]) == ("visible", "visible")
    assert instant(second["next_retry_at"]) == bench.now + RETRY_MS
    assert instant(second["last_attempted_at"]) == bench.now
    ids = {str(each["receipt_id"]) for each in (first, second)}
    assert len(ids) == 2
    assert all(UUID.fullmatch(each) for each in ids)
    assert {str(each["notification_id"]) for each in (first, second)} == {format_id(made.id)}
    (device,) = report("SELECT * FROM notify.device_tokens WHERE is_active")
    assert UUID.fullmatch(str(device["token_id"]))
    named = ("user_id", "device_id", "platform", "push_token", "app_bundle", "app_version", "os_version")
    assert [device[name] for name in named] == [ANN, "d0", "ios", "token", APP, "1.2", "18"]
    assert {instant(device[f"{name}_at"]) for name in ("registered", "last_seen", "token_updated")} == {bench.now}


@shows("S3-25", "S3-45", "S3-48")
async def test_the_tables_of_the_user_api_by_their_names(bench: Bench, report: Report) -> None:
    made = await tried(bench)
    scheduled = notification(bench.now, user=ANN, scheduled_at=later(bench.now, DAY_MS))
    scheduled = msgspec.structs.replace(scheduled, urgency=Urgency.CRITICAL)
    await bench.accept(scheduled)
    read_at = bench.clock.advance(MINUTE_MS)
    await bench.store.feed.mark(marking(made, Mark.READ, read_at))
    await bench.store.devices.deactivate(APP, ANN, DeviceId("d0"))
    rows = {str(row["id"]): row for row in report("SELECT * FROM user_api.notifications")}
    shown, waits = rows[format_id(made.id)], rows[format_id(scheduled.id)]
    assert (shown["status"], shown["priority"], shown["retry_count"]) == ("pending", "normal", 1)
    assert [instant(shown[name]) for name in ("read_at", "updated_at")] == [read_at] * 2
    assert (shown["scheduled_for"], instant(shown["sent_at"])) == (None, read_at - MINUTE_MS)
    assert (waits["status"], waits["priority"], waits["read_at"]) == ("scheduled", "high", None)
    assert instant(waits["scheduled_for"]) == scheduled.scheduled_at
    (device,) = report("SELECT * FROM user_api.device_tokens WHERE NOT is_active")
    info = device["device_info"]
    assert (json.loads(info) if isinstance(info, str) else info) == {"os_version": "18", "app_version": "1.2"}
    assert (instant(device["updated_at"]), device["token"]) == (read_at, "token")
    deliveries = report("SELECT * FROM user_api.notification_deliveries ORDER BY status")
    assert [(each["status"], each["error_code"]) for each in deliveries] == [("failed", "503"), ("success", None)]
    assert [each["token_id"] for each in deliveries] == [None, device["id"]]


@shows("S3-110")
async def test_what_users_want_under_its_other_name(bench: Bench, ledger_store: SqlUnderTest, report: Report) -> None:
    """The types that the app declares, as each user chose; the hours by the clock, and the zone of the profile."""
    store = ledger_store.ground_of(bench.worker).store
    types = {"alert": TypeChange(enabled=False), "message": TypeChange(enabled=True)}
    said = PreferenceChange(types=types, quiet_hours=Hours.parse("22:30-07:05"), frequency_limit=5)
    await store.preferences.change(APP, ANN, said, bench.now, "app")
    await store.preferences.change(APP, UserId("bob"), PreferenceChange(enabled=False), bench.now, "app")
    zone = ProfileChange(named=frozenset({"time_zone"}), time_zone="Asia/Tokyo")
    await store.profiles.change(APP, ANN, zone, bench.now)
    ann, bob = report("SELECT * FROM user_api.user_notification_preferences ORDER BY user_id")
    names = json.loads(ann["enabled_types"]) if isinstance(ann["enabled_types"], str) else ann["enabled_types"]
    assert sorted(names) == ["it's", "message"]
    assert (ann["quiet_hours_start"], ann["quiet_hours_end"], ann["timezone"]) == ("22:30", "07:05", "Asia/Tokyo")
    assert (ann["frequency_limit"], instant(ann["updated_at"])) == (5, bench.now)
    assert bob["enabled_types"] in ("[]", []) and bob["quiet_hours_start"] is None
