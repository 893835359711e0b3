"""Users who were erased after a backup was made do not come back with it, where the store that it replaces is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.adapters.sql.conftest import OpenStore
from tests.adapters.sql.test_copies import accept, call, said
from tests.adapters.sql.test_look import configured, opened
from tests.contract.kills import known
from waypost.bootstrap.admin import migrate_store
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, NotificationId, UserId, next_ids
from waypost.domain.time import MINUTE_MS, Instant, later
from waypost.pipeline.erase import erase
from waypost.ports.erasure import Erasure
from waypost.runtime.clock import SystemClock
from waypost.stores.sql.connection import connect
from waypost.stores.sql.store import Store

pytestmark = pytest.mark.asyncio
APP = AppId("demo")


def order(user: str, at: Instant) -> Erasure:
    """An order to forget a user."""
    (one,), _ = next_ids(at, 1, os.urandom(10), 0)
    return Erasure(NotificationId(one), APP, UserId(user), UserId(f"erased-{user}"), at)


async def registered(store: Store, *users: str) -> None:
    """Each has a device."""
    for user in users:
        said = Registration(APP, UserId(user), DeviceId("phone"), Platform("ios"), f"token-{user}")
        await store.devices.upsert(said, SystemClock().now(), 0)


async def carried_out(store: Store, orders: Sequence[Erasure]) -> None:
    """What the duty does with them, a minute later."""

    async def opts_in(erasure: Erasure) -> None:
        await store.opt_outs.remove(erasure.app, erasure.user_id)

    for each in orders:
        at = later(each.asked_at, MINUTE_MS)
        while not (await erase(store.erasures, store.devices, store.work, each, at, [opts_in])).finished:
            pass


async def test_who_was_erased_since_the_backup_is_erased_again(tmp_path: Path, open_at: OpenStore) -> None:
    """Also who has an opt-out alone, and whose order still stood; of somebody whom the backup does not have, the
    trace stays. It is an older backup, without the table of traces.
    """
    config, database, backup = configured(tmp_path, url="sqlite:///waypost.db"), tmp_path / "waypost.db", tmp_path / "b"
    migrate_store(opened(config))
    store, now = await open_at(database), SystemClock().now()
    await accept(store, replace(known(1), user_id=UserId("told")))
    await registered(store, "ann", "bob", "cyd")
    await store.opt_outs.put(APP, UserId("out"), now)
    said(config, "backup", str(backup))
    with contextlib.closing(connect(backup)) as older:
        older.execute("DROP TABLE erased_user")
    done = [await store.erasures.ask(order(user, SystemClock().now())) for user in ("ann", "out", "told", "zoe")]
    await carried_out(store, done)
    standing = await store.erasures.ask(order("bob", SystemClock().now()))
    await store.close()
    assert said(config, "restore", str(backup), "--force")["erased_again"] == 4
    again = await open_at(database)
    orders = list(await again.erasures.standing(10))
    assert sorted(orders, key=lambda each: each.id) == sorted([*done[:3], standing], key=lambda each: each.id)
    (zoe,) = (await again.erasures.carried_out(APP, Instant(0))).orders_of(UserId("zoe"))
    assert zoe == done[3]
    await carried_out(again, orders)
    assert [await again.devices.of_user(APP, UserId(user)) for user in ("ann", "bob")] == [[], []]
    assert len(await again.devices.of_user(APP, UserId("cyd"))) == 1
    assert not await again.opt_outs.has(APP, UserId("out"))
    assert await again.erasures.standing(10) == []
    await again.close()
    assert "4 users were erased since the backup" in call(config, "restore", str(backup), "--force").output


async def test_where_the_store_that_is_replaced_says_nothing_it_is_said_that_nobody_knows(
    tmp_path: Path, open_at: OpenStore
) -> None:
    """It is damaged, or was lost with its disk."""
    config, database, backup = configured(tmp_path, url="sqlite:///waypost.db"), tmp_path / "waypost.db", tmp_path / "b"
    migrate_store(opened(config))
    store = await open_at(database)
    await registered(store, "ann")
    said(config, "backup", str(backup))
    await store.close()
    assert said(config, "restore", str(backup), "--force")["erased_again"] == 0
    database.write_bytes(b"no database" * 1000)
    assert "who was erased since the backup is not known" in call(config, "restore", str(backup), "--force").output
    database.unlink()
    assert said(config, "restore", str(backup))["erased_again"] is None
