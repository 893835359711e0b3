"""How often the registry is asked for many users: what a second of 10,000 look-ups costs is round trips, not users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.sql import SqlUnderTest
from tests.contract.stores import StoreUnderTest
from tests.shows import shows
from waypost.domain.device import Platform, Registration
from waypost.domain.ids import AppId, DeviceId, UserId
from waypost.stores.sql.database import Database
from waypost.stores.sql.driver import Connection

pytestmark = pytest.mark.asyncio
APP = AppId("demo")


@shows("S1-114")
@pytest.mark.parametrize("users", [1, 500])
async def test_a_batch_of_users_is_one_statement_however_many_they_are(
    ledger_store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch, users: int
) -> None:
    """So 10,000 users a second, asked for by 500, are twenty statements (requirement S1-114)."""
    assert isinstance(ledger_store, SqlUnderTest)
    said: list[str] = []
    read = Database.look_up

    class Counted:
        """A connection whose statements are counted."""

        def __init__(self, connection: Connection) -> None:
            self._connection = connection

        def execute(self, sql: str, *bound: Any) -> Any:
            """See Connection."""
            said.append(sql)
            return self._connection.execute(sql, *bound)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    async def counted(database: Database, query: Callable[[Any], Any]) -> Any:
        return await read(database, lambda connection: query(Counted(connection)))

    monkeypatch.setattr(Database, "look_up", counted)
    asked = [(APP, UserId(f"user-{n}")) for n in range(users)]
    for app, user in (asked[0], asked[-1]):
        call = Registration(app, user, DeviceId("d"), Platform("ios"), f"token of {user}")
        await ledger_store.devices.upsert(call, ledger_store.clock.now(), 0)
    found = await ledger_store.devices.for_users(asked)
    assert [len(devices) for devices in found] == [1, *[0] * (users - 2), 1][:users]
    assert len(said) == 1
