"""Reading a piece: its recipients with their devices, less those that have their row already.

bulk_piece                     open ones, one job after the other
device / bulk_recipient        the piece's range of user ids
notification                   by the ids that follow, where some rows of the piece are written
user_profile                   the zones of its recipients, of a job with a local time
user_hour                      when they read, of a job with the best time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from waypost.domain.best_hour import HABIT_MS, BasedOn, summed
from waypost.domain.best_time import Habits, is_best
from waypost.domain.bulk import Audience, BulkJob, notification_for, recipient_id, variables_for
from waypost.domain.ids import NotificationId, UserId
from waypost.domain.rollup import EVERYBODY
from waypost.domain.time import Instant, later
from waypost.ports.work import WorkItem
from waypost.stores.sql.analytics import hours_of
from waypost.stores.sql.bulk_rows import FROM_JOB, encoded, job_of
from waypost.stores.sql.bulk_walk import asked_by, matching
from waypost.stores.sql.devices import DEVICE, device_of
from waypost.stores.sql.driver import Connection, Row
from waypost.stores.sql.rows import select_in
from waypost.stores.sql.segment_walk import matching_range

_NOT_OUT = "NOT EXISTS (SELECT 1 FROM opt_out WHERE opt_out.app = ? AND opt_out.user_id = {table}.user_id)"
_FROM_REGISTRY = f"""\
SELECT user_id, NULL, {DEVICE} FROM device
WHERE app = ? AND user_id > ? AND user_id <= ? AND {{matches}} = 1 AND {_NOT_OUT.format(table="device")}
ORDER BY user_id
"""  # noqa: S608 - a list of columns
_FROM_LIST = f"""\
SELECT bulk_recipient.user_id, variables, {DEVICE} FROM bulk_recipient
LEFT JOIN device ON device.app = ? AND device.user_id = bulk_recipient.user_id AND active = 1 AND token_use = ?
WHERE job = ? AND bulk_recipient.user_id > ? AND bulk_recipient.user_id <= ?
AND {_NOT_OUT.format(table="bulk_recipient")}
ORDER BY bulk_recipient.user_id
"""  # noqa: S608 - a list of columns
_ZONES = """\
SELECT user_id, time_zone FROM user_profile WHERE app = ? AND time_zone IS NOT NULL AND user_id IN ({texts})
"""
_FROM_SEGMENT = f"""\
SELECT chosen.user_id, NULL, {DEVICE} FROM ({{table}}) AS chosen
LEFT JOIN device ON device.app = ? AND device.user_id = chosen.user_id AND active = 1 AND token_use = ?
WHERE {_NOT_OUT.format(table="chosen")}
ORDER BY chosen.user_id
"""  # noqa: S608 - a list of columns
_KNOWN = "SELECT id FROM notification WHERE id IN ({keys})"

_variables = msgspec.msgpack.Decoder(dict[str, str]).decode


Times = Callable[[UserId], tuple[str | None, Habits, Instant]]
"""Tells the zone and the habits of a recipient, and the time by which they count."""


class PieceRow(Struct, frozen=True, array_like=True):
    """A row of ``bulk_piece``."""

    seq: int
    job: int
    n: int
    shard: int
    after: str
    until: str
    written: int


PIECE_COLUMNS = "seq, job, n, shard, after_user, until_user, written"


class Read(Struct, frozen=True):
    """A piece as leased from: the recipients still to be told, and the values of their placeholders."""

    row: PieceRow
    items: tuple[WorkItem, ...]
    variables: dict[NotificationId, bytes]
    due: int
    """The number of rows that the piece has once all of *items* are written."""


def read_job(connection: Connection, number: int) -> BulkJob:
    """Read a job that has pieces."""
    return job_of(connection.execute(f"{FROM_JOB} WHERE number = ?", (number,)).fetchone())


def read_piece(connection: Connection, job: BulkJob, row: PieceRow, now: Instant, *, with_devices: bool) -> Read:
    """Read everyone of *row* without a row yet, by user id; *with_devices* where those are here."""
    audience = list(read_audience(connection, job, row))
    known: set[NotificationId] = set()
    if row.written:
        ids = [recipient_id(job.id, row.n, each.user_id) for each in audience]
        known = {found[0] for found in select_in(connection, _KNOWN, ids)}
    when = times_of(connection, job, [each.user_id for each in audience], now)
    items: list[WorkItem] = []
    variables: dict[NotificationId, bytes] = {}
    for each in audience:
        notification = notification_for(job, row.n, each.user_id, each.variables, *when(each.user_id))
        if notification.id in known:
            continue
        items.append(WorkItem(notification, None, each.devices if with_devices else None))
        if each.variables is not None:
            variables[notification.id] = encoded(each.variables)
    return Read(row, tuple(items), variables, row.written + len(items))


def times_of(connection: Connection, job: BulkJob, users: Sequence[UserId], now: Instant) -> Times:
    """Return what tells what the time of each of *users* follows from; nothing is read where the job has none."""
    if job.send_at is None:
        return lambda _: (None, (), now)
    named = msgspec.json.encode(users).decode()
    zones: dict[str, str] = dict(
        connection.execute(_ZONES.format(texts=connection.dialect.texts), (job.app, named)).fetchall()
    )
    if not is_best(job.send_at):
        return lambda user: (zones.get(user), (), now)
    *each, everybody = hours_of(connection, job.app, [*users, EVERYBODY], later(now, -HABIT_MS), now)
    own = dict(zip(users, each, strict=True))
    alike = [] if job.segment is None else [(BasedOn.SEGMENT, summed(each))]  # those of a piece stand for all
    return lambda user: (zones.get(user), [(BasedOn.USER, own[user]), *alike, (BasedOn.APP, everybody)], now)


def read_audience(connection: Connection, job: BulkJob, row: PieceRow) -> Iterator[Audience]:
    """Read the recipients of *row* with the devices that the job is for."""
    devices: list[Row] = []
    user: tuple[Any, Any] | None = None
    for user_id, own, *device in _rows(connection, job, row):
        if job.part is not None and not job.part.has(user_id):
            continue
        if user is not None and user[0] != user_id:
            yield _audience(job, user, devices)
            devices = []
        user = (user_id, own)
        if device[0] is not None:
            devices.append(tuple(device))
    if user is not None:
        yield _audience(job, user, devices)


def _rows(connection: Connection, job: BulkJob, row: PieceRow) -> list[Row]:
    if job.segment is not None:
        table, asked = matching_range(job.segment, asked_by(job, connection), row.after, row.until)
        users = _FROM_SEGMENT.format(table=table)
        return connection.execute(users, (*asked, job.app, job.token_use, job.app)).fetchall()
    if job.registry is None:
        bound: tuple[Any, ...] = (job.app, job.token_use, row.job, row.after, row.until, job.app)
        return connection.execute(_FROM_LIST, bound).fetchall()
    condition, asked = matching(job.registry, job.token_use)
    sql = _FROM_REGISTRY.format(matches=condition)
    return connection.execute(sql, (job.app, row.after, row.until, *asked, job.app)).fetchall()


def _audience(job: BulkJob, user: tuple[Any, Any], rows: list[Row]) -> Audience:
    devices = [device_of(row) for row in rows]
    if len(devices) > 1:
        devices.sort(key=lambda device: (device.platform, device.device_id))
    variables = variables_for(job, {} if user[1] is None else _variables(user[1]), user[0])
    return Audience(user[0], tuple(devices), variables)
