"""Whom a filter finds, as a bulk job would walk them, without a job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from waypost.domain.bulk import BulkJob
from waypost.domain.device import Device
from waypost.domain.ids import UserId
from waypost.ports.bulk import AudiencePage
from waypost.stores.sql.bulk_walk import matching, whole_page
from waypost.stores.sql.database import Database
from waypost.stores.sql.devices import DEVICE, device_of
from waypost.stores.sql.driver import Connection

_OF_USERS = f"""\
SELECT {DEVICE} FROM device WHERE app = ? AND user_id IN ({{texts}}) AND {{matches}} = 1
ORDER BY user_id, platform, device_id
"""  # noqa: S608 - a list of columns
_NO_JOB = 0
"""The number of the job that there is not; no list is its."""


class SqlAudienceWalk:
    """See ports.bulk.AudienceWalk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, job: BulkJob, after: UserId, n: int) -> AudiencePage:
        """See AudienceWalk."""
        return await self._database.read(lambda connection: _page(connection, job, after, n))

    async def devices(self, job: BulkJob, users: Sequence[UserId]) -> dict[UserId, tuple[Device, ...]]:
        """See AudienceWalk."""
        return await self._database.read(lambda connection: _devices(connection, job, users))


def _page(connection: Connection, job: BulkJob, after: UserId, n: int) -> AudiencePage:
    whole, is_last = whole_page(connection, _NO_JOB, job, after, n)
    found = [(UserId(each.user_id), bool(each.opted_out)) for each in whole if each.matches]
    return AudiencePage(found, UserId(whole[-1].user_id) if whole else after, is_last)


def _devices(connection: Connection, job: BulkJob, users: Sequence[UserId]) -> dict[UserId, tuple[Device, ...]]:
    assert job.registry is not None, "users of another filter are told on all of their devices"
    condition, bound = matching(job.registry, job.token_use)
    sql = _OF_USERS.format(texts=connection.dialect.texts, matches=condition)
    found: dict[UserId, list[Device]] = {}
    for row in connection.execute(sql, (job.app, json.dumps(users), *bound)).fetchall():
        device = device_of(row)
        found.setdefault(device.user_id, []).append(device)
    return {user: tuple(devices) for user, devices in found.items()}
