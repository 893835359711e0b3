"""Whom a filter of the registry finds, as a bulk job on it would walk them, without a job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from waypost.domain.bulk import PageRow, RegistryFilter
from waypost.domain.device import Device, TokenUse
from waypost.domain.ids import AppId, UserId
from waypost.ports.bulk import RegistryPage
from waypost.stores.sql.bulk_walk import REGISTRY_PAGE, matching
from waypost.stores.sql.database import Database
from waypost.stores.sql.devices import DEVICE, device_of
from waypost.stores.sql.driver import Connection

_OF_USERS = f"""\
SELECT {DEVICE} FROM device WHERE app = ? AND user_id IN ({{texts}}) AND {{matches}} = 1
ORDER BY user_id, platform, device_id
"""  # noqa: S608 - a list of columns


class SqlRegistryWalk:
    """See ports.bulk.Registry."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, app: AppId, registry: RegistryFilter, use: TokenUse, after: UserId, n: int) -> RegistryPage:
        """See Registry."""
        return await self._database.read(lambda connection: _page(connection, app, registry, use, after, n))

    async def of(
        self, app: AppId, registry: RegistryFilter, use: TokenUse, users: Sequence[UserId]
    ) -> dict[UserId, tuple[Device, ...]]:
        """See Registry."""
        return await self._database.read(lambda connection: _of(connection, app, registry, use, users))


def _page(
    connection: Connection, app: AppId, registry: RegistryFilter, use: TokenUse, after: UserId, n: int
) -> RegistryPage:
    condition, bound = matching(registry, use)
    sql = REGISTRY_PAGE.format(matches=condition)
    rows = [PageRow(*each) for each in connection.execute(sql, (app, *bound, app, after, n)).fetchall()]
    is_last = sum(each.rows for each in rows) < n
    whole = rows if is_last or len(rows) == 1 else rows[:-1]  # the last user's devices may go on behind the page
    found = [(UserId(each.user_id), bool(each.opted_out)) for each in whole if each.matches]
    return RegistryPage(found, UserId(whole[-1].user_id) if whole else after, is_last)


def _of(
    connection: Connection, app: AppId, registry: RegistryFilter, use: TokenUse, users: Sequence[UserId]
) -> dict[UserId, tuple[Device, ...]]:
    condition, bound = matching(registry, use)
    sql = _OF_USERS.format(texts=connection.dialect.texts, matches=condition)
    found: dict[UserId, list[Device]] = {}
    for row in connection.execute(sql, (app, json.dumps(users), *bound)).fetchall():
        device = device_of(row)
        found.setdefault(device.user_id, []).append(device)
    return {user: tuple(devices) for user, devices in found.items()}
